"""Tests of liveness, readiness and the health checks."""

import asyncio
import dataclasses
from functools import partial
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest

from core.api import health as health_module
from core.api.health import Health, HealthCheckFailed
from core.api.health_checks import check_engine
from core.app import create_app
from core.engine.workflow import EngineState
from core.wiring.application import build
from core.wiring.bootstrap import read_runtime
from infrastructure.database.health_checks import BacklogFound
from tests.support.calls import statuses


async def works():
    return "PostgreSQL 18"


async def hangs():
    await asyncio.Event().wait()


def failing(error, cause=None):
    async def probe():
        raise error from cause

    return probe


class Counting:
    """A health check that counts its calls."""

    asked = 0

    async def __call__(self):
        self.asked += 1
        return "fine"


def health_with(**probes):
    """All bindings are essential except the cache."""
    checks = {name: ("real", probe) for name, probe in probes.items()}
    return Health("local", checks, essential=frozenset(probes) - {"cache"})


@pytest.fixture
def ask(application, operator):
    """Requests the readiness of an application with other health checks, as an operator by default."""

    async def get(headers=operator, **probes):
        app = create_app(dataclasses.replace(application, health=health_with(**probes)))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.get("/health/ready", headers=headers)

    return get


async def test_a_process_that_answers_is_alive(client):
    answer = await client.get("/health")

    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("who", ["anonymous", "tenant", "forged"])
@pytest.mark.parametrize(
    ("probes", "status_code", "status"),
    [
        ({"database": works}, 200, "ready"),
        ({"database": works, "cache": failing(OSError())}, 200, "degraded"),
        ({"database": failing(OSError())}, 503, "not_ready"),
    ],
    ids=["ready", "degraded", "not ready"],
)
async def test_readiness_shows_details_to_operators_only(ask, bearer, who, probes, status_code, status):
    operator = bearer("operator@example.com", is_operator=True)
    headers = {
        "anonymous": {},
        "tenant": bearer(),
        "forged": {"Authorization": f"{operator['Authorization'][:-8]}AAAAAAAA"},
    }[who]

    answer = await ask(headers, **probes)
    detailed = await ask(operator, **probes)

    assert (answer.status_code, answer.json()) == (status_code, {"status": status})
    assert (detailed.status_code, detailed.json()["status"]) == (status_code, status)
    assert detailed.json().keys() == {"status", "environment", "version", "bindings"}


async def test_readiness_is_limited_by_address(open_client, limit):
    await limit("health", 2)
    client, elsewhere = await open_client(), await open_client("203.0.113.9")

    assert await statuses(client, 3, "/health/ready") == [200, 200, 429]
    assert await statuses(elsewhere, 1, "/health/ready") == [200]
    assert await statuses(client, 3, "/health") == [200] * 3


async def test_readiness_without_a_database_is_not_ready_and_tells_operators_why(
    spoilable_addresses, owner, place, operator
):
    settings = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": spoilable_addresses.owner,
        "OSLIRA_DATA_DIR": str(place.settings.data_dir),
    }
    async with build(read_runtime(settings)) as application:
        await disconnect(owner, spoilable_addresses)
        app = create_app(application)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            plain = await client.get("/health/ready")
            detailed = await client.get("/health/ready", headers=operator)

    assert (plain.status_code, plain.json()) == (503, {"status": "not_ready"})
    assert detailed.json()["bindings"]["database"]["ok"] is False


async def disconnect(owner, addresses):
    name = urlsplit(addresses.owner).path[1:]
    await owner.execute(f'alter database "{name}" allow_connections false')
    await owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name)


async def test_real_application_is_ready_and_shows_the_mode_of_each_binding(client, operator):
    answer = await client.get("/health/ready", headers=operator)

    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    modes = {name: binding["mode"] for name, binding in answer.json()["bindings"].items()}
    assert modes == {
        "database": "real",
        "migrations": "real",
        "role_separation": "real",
        "rate_limits": "real",
        "object_store": "local",
        "secrets": "local",
        "sentry": "local",
        "engine": "real",
        "openai": "simulated",
        "anthropic": "simulated",
        "apify": "simulated",
        "scraperapi": "simulated",
        "stripe": "simulated",
        "identity": "local",
        "supabase": "simulated",
    }


async def test_liveness_does_not_depend_on_any_binding(application):
    app = create_app(dataclasses.replace(application, health=health_with(database=failing(OSError()))))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/health")

    assert answer.status_code == 200


async def test_failed_essential_binding_is_named_and_makes_the_process_not_ready(ask):
    answer = await ask(database=works, migrations=failing(HealthCheckFailed("2 wait: run oslira migrate")))

    assert (answer.status_code, answer.json()["status"]) == (503, "not_ready")
    assert answer.json()["bindings"] == {
        "database": {"ok": True, "mode": "real", "detail": "PostgreSQL 18"},
        "migrations": {"ok": False, "mode": "real", "detail": "2 wait: run oslira migrate"},
    }


@pytest.mark.parametrize(
    ("probe", "detail"),
    [
        (failing(OSError("postgresql://u:canary@h/d")), "OSError"),
        (failing(RuntimeError("canary"), OSError("canary")), "RuntimeError (OSError)"),
        (failing(ValueError("canary"), ValueError("canary")), "ValueError (ValueError)"),
    ],
)
async def test_only_the_type_of_an_unexpected_error_is_shown(ask, probe, detail):
    answer = await ask(database=probe)

    assert answer.status_code == 503
    assert answer.json()["bindings"]["database"]["detail"] == detail
    assert "canary" not in answer.text


async def test_hanging_health_check_times_out_without_affecting_the_others(ask, monkeypatch):
    monkeypatch.setattr(health_module, "CHECK_TIMEOUT_S", 0.01)

    answer = await ask(database=hangs, secrets=works)

    assert answer.status_code == 503
    bindings = answer.json()["bindings"]
    assert (bindings["database"]["ok"], bindings["secrets"]["ok"]) == (False, True)
    assert bindings["database"]["detail"].startswith("TimeoutError")


async def test_concurrent_readiness_requests_share_one_health_check():
    probe = Counting()
    health = health_with(database=probe)

    answers = await asyncio.gather(*(health.readiness() for _ in range(20)))

    assert probe.asked == 1
    assert {answer.status for answer in answers} == {"ready"}


async def test_cached_readiness_expires(monkeypatch):
    monkeypatch.setattr(health_module, "CACHED_FOR_S", 0.0)
    probe = Counting()
    health = health_with(database=probe)

    await health.readiness()
    await health.readiness()

    assert probe.asked == 2


async def test_failed_binding_that_is_not_essential_makes_the_process_degraded(ask):
    answer = await ask(database=works, cache=failing(HealthCheckFailed("the folder is read-only")))

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["bindings"]["cache"] == {
        "ok": False,
        "mode": "real",
        "detail": "the folder is read-only",
    }


@pytest.mark.parametrize(
    ("change", "ok", "said"),
    [
        ("insert into oslira.migrations values ('9999_newer.sql', 'x')", True, "applied"),
        ("delete from oslira.migrations where name like '0003%'", False, "pending: 0003_accounts"),
        ("update oslira.migrations set checksum = 'x' where name like '0002%'", False, "0002_plans_and"),
    ],
    ids=["a newer version's", "one waits", "one was changed"],
)
async def test_state_of_the_migrations_is_reported(spoilable_addresses, tmp_path, change, ok, said):
    place = read_runtime(
        {
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": spoilable_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path),
        }
    )
    async with build(place) as application:
        connection = await asyncpg.connect(spoilable_addresses.owner)
        await connection.execute(change)
        await connection.close()

        readiness = await application.health.readiness()

    assert (readiness.status != "not_ready", readiness.bindings["migrations"].ok) == (ok, ok)
    assert said in readiness.bindings["migrations"].detail


async def test_unwritable_object_folder_is_reported_with_its_reason(addresses, tmp_path):
    (tmp_path / "objects").write_bytes(b"a file")
    place = read_runtime(
        {"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": addresses.owner, "OSLIRA_DATA_DIR": str(tmp_path)}
    )
    async with build(place) as application:
        readiness = await application.health.readiness()

    assert readiness.status == "degraded"
    assert readiness.bindings["object_store"].detail == "The object store is unavailable: ENOTDIR."


async def test_hosts_that_are_exempt_from_tls_are_listed(addresses, place):
    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": addresses.owner,
        "OSLIRA_DATA_DIR": str(place.settings.data_dir),
        "OSLIRA_PLAINTEXT_HOSTS": "db, cache",
    }
    async with build(read_runtime(environ)) as application:
        binding = (await application.health.readiness()).bindings["plaintext_hosts"]

    assert (binding.ok, binding.detail) == (True, "may be reached without encryption: db, cache")


class Work:
    """Database health checks with a given state of the work queue."""

    def __init__(self, *executors, queued_count=0, oldest_wait_s=0.0):
        self._found = BacklogFound(
            executors=list(executors), queued_count=queued_count, oldest_wait_s=oldest_wait_s
        )

    async def work(self):
        return self._found


ONE, OTHER = "11111111-aaaa", "22222222-bbbb"


@pytest.mark.parametrize(
    ("work", "state", "expected"),
    [
        (Work(), EngineState(), ("degraded", "no worker: start oslira worker; 0 queued")),
        (
            Work(),
            EngineState(is_wanted=True),
            ("degraded", "no worker: start oslira worker; the worker of this process is starting; 0 queued"),
        ),
        (Work(ONE), EngineState(), ("ready", "workers: 11111111; 0 queued")),
        (
            Work(ONE, OTHER, queued_count=100, oldest_wait_s=180.0),
            EngineState(executor=OTHER),
            (
                "ready",
                "workers: 11111111, 22222222; this process is 22222222; 100 queued, the oldest for 180 s",
            ),
        ),
        (
            Work(ONE, queued_count=101, oldest_wait_s=1.0),
            EngineState(),
            ("degraded", "workers: 11111111; 101 queued, the oldest for 1 s"),
        ),
        (
            Work(ONE, queued_count=1, oldest_wait_s=181.0),
            EngineState(),
            ("degraded", "workers: 11111111; 1 queued, the oldest for 181 s"),
        ),
    ],
    ids=["anonymous", "coming up", "one", "this one too", "too many", "too long"],
)
async def test_workers_and_queued_runs_are_reported(work, state, expected):
    health = Health("local", {"engine": ("local", partial(check_engine, work, state))}, essential=frozenset())

    readiness = await health.readiness()

    assert (readiness.status, readiness.bindings["engine"].detail) == expected
