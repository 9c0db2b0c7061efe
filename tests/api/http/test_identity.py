"""Wired identity: signing keys, invitations and their health checks."""

import asyncio
import json
import os
import signal
import sys
import time

import httpx
import pytest

from core.app import create_app
from core.settings.settings import InvalidSettings
from core.wiring.application import build
from core.wiring.bootstrap import read_runtime
from features.auth.domain.errors import InvitationNotSent
from tests.conftest import PROJECT
from tests.support import answers, free_port, until
from tests.support.jwks_server import key_server
from tests.support.problems import assert_problem
from tests.support.token_forge import Smith, claims_with, public_jwk, public_pem
from tests.unit.core.settings.test_settings import SERVER

SECRET = "s" * 32
INVITATION = {"link": "https://app.example/join", "account_name": "Looms", "inviter": "grace@example.com"}


@pytest.fixture(scope="module")
def smith():
    return Smith("ES256")


@pytest.fixture
async def issuer(smith):
    async with key_server() as issuer:
        issuer.publish(public_jwk(smith.key, "ES256"))
        yield issuer


@pytest.fixture
def place(addresses, tmp_path):
    """Creates a runtime on the test database with the given variables."""

    def place(**environ):
        return read_runtime(
            {
                "OSLIRA_ENVIRONMENT": "local",
                "DATABASE_URL": addresses.owner,
                "OSLIRA_DATA_DIR": str(tmp_path),
                **environ,
            }
        )

    return place


@pytest.fixture
def ask():
    """Requests the balance with a token."""

    async def ask(application, token):
        transport = httpx.ASGITransport(create_app(application), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/v1/credits/balance", headers={"Authorization": f"Bearer {token}"})

    return ask


def token_of(smith, issuer, **claims):
    """A token that is valid now."""
    now_s = int(time.time())
    return smith.token(claims=claims_with(iss=issuer, iat=now_s, exp=now_s + 600, **claims))


async def binding(application, name):
    return (await application.health.readiness()).bindings[name]


async def test_tokens_are_verified_with_the_published_keys_of_the_supabase_project(place, ask, issuer, smith):
    url = issuer.url.rpartition("/")[0]
    async with build(place(SUPABASE_URL=url, SUPABASE_SERVICE_ROLE_KEY="key")) as application:
        accepted = await ask(application, token_of(smith, f"{url}/auth/v1"))
        refused = await ask(application, token_of(smith, "http://127.0.0.1/auth/v1"))
        identity = await binding(application, "identity")

    assert accepted.status_code == 200
    assert_problem(refused, 401, "token_invalid")
    assert issuer.paths == ["/auth/v1/.well-known/jwks.json"]
    assert (identity.ok, identity.mode, identity.detail) == (True, "real", "ES256, 1 from the issuer")


async def test_unavailable_issuer_gives_503_and_fails_the_health_check(place, ask, issuer, smith):
    await issuer.stop()
    settings = {"OSLIRA_JWT_JWKS_URL": issuer.url, "OSLIRA_JWT_ISSUER": "https://id.test"}
    async with build(place(**settings)) as application:
        answer = await ask(application, token_of(smith, "https://id.test"))
        identity = await binding(application, "identity")
        readiness = await application.health.readiness()
    await issuer.restart()

    assert_problem(answer, 503, "identity_unavailable")
    assert (identity.ok, readiness.status) == (False, "degraded")
    assert identity.detail == "signing keys not loaded: ConnectError; no token can be verified"


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "HS256"])
async def test_a_configured_key_checks_tokens(place, ask, algorithm):
    smith = Smith(algorithm)
    settings = {"OSLIRA_JWT_ALGORITHM": algorithm, "OSLIRA_JWT_ISSUER": "https://id.test"}
    if algorithm == "HS256":
        smith.key = SECRET.encode()
        settings["OSLIRA_JWT_SECRET"] = SECRET
    else:
        settings["OSLIRA_JWT_PUBLIC_KEY"] = public_pem(smith.key).decode()

    async with build(place(**settings)) as application:
        answer = await ask(application, token_of(smith, "https://id.test"))
        identity = await binding(application, "identity")

    assert answer.status_code == 200
    assert (identity.mode, identity.detail) == ("real", f"{algorithm}, one key")


async def test_anonymous_user_gets_instructions(place, ask, issuer, smith):
    settings = {"OSLIRA_JWT_JWKS_URL": issuer.url, "OSLIRA_JWT_ISSUER": "https://id.test"}
    async with build(place(**settings)) as application:
        answer = await ask(application, token_of(smith, "https://id.test", is_anonymous=True))

    assert_problem(answer, 401, "token_anonymous")
    assert "e-mail address" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("algorithm", "kind"), [("ES256", "an ES256 (P-256) key"), ("RS256", "an RS256 key")]
)
async def test_invalid_public_key_is_reported_at_start(place, algorithm, kind):
    settings = {"OSLIRA_JWT_ALGORITHM": algorithm, "OSLIRA_JWT_PUBLIC_KEY": "garbage"}

    with pytest.raises(InvalidSettings) as refusal:
        async with build(place(**settings)):
            pass

    (wrong,) = refusal.value.errors
    assert wrong.startswith(f"OSLIRA_JWT_PUBLIC_KEY is not the public half of {kind}")


async def test_a_laptop_without_supabase_puts_invitations_into_its_outbox(place, tmp_path):
    async with build(place()) as application:
        before = await binding(application, "supabase")
        started_early = (tmp_path / "outbox.jsonl").exists()
        await application.dependencies["invitations"].mail.send("ada@example.com", **INVITATION)

    (line,) = (tmp_path / "outbox.jsonl").read_text().splitlines()
    assert (json.loads(line)["to"], json.loads(line)["link"]) == ("ada@example.com", INVITATION["link"])
    assert (before.ok, before.mode, started_early) == (True, "simulated", False)


async def test_failed_invitation_fails_the_health_check(place, issuer):
    issuer.status = "500 X"
    url = issuer.url.rpartition("/")[0]
    async with build(place(SUPABASE_URL=url, SUPABASE_SERVICE_ROLE_KEY="key")) as application:
        with pytest.raises(InvitationNotSent):
            await application.dependencies["invitations"].mail.send("ada@example.com", **INVITATION)
        supabase = await binding(application, "supabase")

    assert issuer.paths[:1] == ["/auth/v1/invite?redirect_to=https%3A%2F%2Fapp.example%2Fjoin"]
    assert (supabase.ok, supabase.mode) == (False, "real")
    assert supabase.detail.startswith("the last invitation was not sent: ")


async def test_a_server_without_supabase_says_that_it_cannot_invite(place, addresses, smith):
    key = {"OSLIRA_JWT_PUBLIC_KEY": public_pem(smith.key).decode()}
    async with build(place(**{**SERVER, **key, "DATABASE_URL": addresses.owner})) as application:
        with pytest.raises(InvitationNotSent):
            await application.dependencies["invitations"].mail.send("ada@example.com", **INVITATION)
        supabase = await binding(application, "supabase")

    assert (supabase.ok, supabase.mode) == (False, "real")
    assert "SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY" in supabase.detail


async def test_simulators_run_as_a_command_until_sigterm(tmp_path):
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "core.cli.main", "simulators", "--port", str(port)),
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), "OSLIRA_DATA_DIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await until(lambda: answers(port) or process.returncode is not None)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = await process.communicate()

    assert stdout.decode() == f"http://127.0.0.1:{port}\n"
    assert (process.returncode, stderr) == (0, b"")
