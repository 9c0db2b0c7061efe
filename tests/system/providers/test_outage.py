"""OpenAI outage: fallback to Claude at Claude's price, and an open circuit breaker with few probes."""

from dataclasses import replace

import pytest

from core.api.health import Health
from core.wiring.providers import provider_health_checks
from infrastructure.ai.routing.recovery_probes import TASK as PROBE
from infrastructure.resilience.circuit_breaker import BreakerRules
from shared.clock import utc_now
from shared.llm import Usage
from tests.support import until
from tests.system.providers.faults import set_fault
from tests.system.providers.world import ANTHROPIC, LIGHT, OPENAI, model_catalog

RULES = BreakerRules(failures_max=5, open_s=10.0)


@pytest.fixture
async def gateway(outside):
    """Gateway while all of OpenAI is down."""
    await set_fault(outside.simulators, "openai", "/openai", "503")
    return outside.gateway(breaker_rules=RULES)


@pytest.fixture
def ask(outside, gateway):
    """Returns a function that sends prompts in sequence and returns the providers that answered."""

    async def ask(count=1):
        return [(await gateway.complete(outside.prompt())).provider for _ in range(count)]

    return ask


@pytest.fixture
def breaker_is(gateway):
    """Returns a function that waits until OpenAI's circuit breaker has this state, which a probe sets."""
    table = model_catalog()
    name = table.route(table.task(LIGHT), utc_now().date())[0].name

    async def wait_for(state):
        await until(lambda: gateway.breakers()[f"openai/{name}"].state == state)

    return wait_for


@pytest.fixture
def health_page(application, client_of, gateway, operator):
    """Returns a function that reads the readiness page with this gateway's provider checks."""

    async def page():
        known = application.health
        probes = {**known.checks, **provider_health_checks(application.settings, gateway)}
        health = Health(known.environment, probes, known.essential)
        client = client_of(replace(application, health=health))
        answer = await client.get("/health/ready", headers=operator)
        return answer.json()

    return page


async def has_paid_for_probes(owner, outcomes, *, since):
    """Probes are attributed to no account."""
    rows = await owner.fetch(
        """
        select outcome from ai_usage_logs
        where task = $1 and created_at > $2 and account_id is null order by created_at
        """,
        *(PROBE, since),
    )
    return [row["outcome"] for row in rows] == outcomes


async def test_open_breaker_stops_calls_to_openai_and_claude_answers(outside, ask, breaker_is):
    assert await ask(3) == ["anthropic"] * 3
    await breaker_is("open")
    assert await outside.asked(OPENAI, ANTHROPIC) == [RULES.failures_max, 3]

    assert await ask(20) == ["anthropic"] * 20
    assert await outside.asked(OPENAI, ANTHROPIC) == [RULES.failures_max, 23]


async def test_fallback_completion_is_priced_as_claude(ask, books, model_rows):
    await ask()

    *failed, row = await model_rows()
    tokens = {name: row[name] for name in Usage.__struct_fields__}
    assert [(other["provider"], other["cost_nanodollars"]) for other in failed] == [("openai", 0)] * 2
    assert (row["provider"], row["model"].startswith("claude-")) == ("anthropic", True)
    price = books.prices.of_tokens("anthropic", row["model"], Usage(**tokens), row["created_at"])
    assert row["cost_nanodollars"] == price > 0


async def test_failed_probe_doubles_the_open_time_and_a_successful_one_closes_the_breaker(
    outside, owner, ask, breaker_is
):
    began_at = utc_now()
    await ask(3)

    outside.clock.ahead_s += RULES.open_s
    assert await ask() == ["anthropic"]  # a concurrent probe fails
    await breaker_is("open")
    outside.clock.ahead_s += RULES.open_s
    assert await ask(2) == ["anthropic"] * 2
    assert await outside.asked(OPENAI) == [RULES.failures_max + 1]

    await outside.simulators.fault("/openai", times=0)
    outside.clock.ahead_s += RULES.open_s
    assert await ask() == ["anthropic"]  # a concurrent probe succeeds
    await breaker_is("closed")
    assert await ask(2) == ["openai"] * 2
    assert await outside.asked(OPENAI) == [RULES.failures_max + 4]
    await until(lambda: has_paid_for_probes(owner, ["unavailable", "answered"], since=began_at))


async def test_readiness_reports_the_open_breaker_and_its_fallback(outside, ask, breaker_is, health_page):
    await ask(3)

    page = await health_page()
    openai = page["bindings"]["openai"]
    assert (page["status"], openai["ok"], page["bindings"]["anthropic"]["ok"]) == ("degraded", False, True)
    assert "circuit breaker open" in openai["detail"]

    await outside.simulators.fault("/openai", times=0)
    outside.clock.ahead_s += RULES.open_s
    await ask()
    await breaker_is("closed")

    page = await health_page()
    # Not the whole status: runs that other tests left in the queue may be too old.
    assert (page["bindings"]["openai"]["ok"], page["bindings"]["anthropic"]["ok"]) == (True, True)


async def test_outage_of_both_providers_opens_both_breakers(outside, gateway, model_rows):
    await set_fault(outside.simulators, "anthropic", "/anthropic", "529")
    refusals = 0

    for _ in range(10):
        with pytest.raises(Exception, match="No model is available"):
            await gateway.complete(outside.prompt())
        refusals += 1

    rows = await model_rows()
    assert refusals == 10
    assert await outside.asked(OPENAI, ANTHROPIC) == [RULES.failures_max] * 2
    assert [row["outcome"] for row in rows[-5:]] == ["skipped"] * 5
