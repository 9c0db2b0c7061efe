"""Tests of the operators' commands and of their error messages."""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import uuid
from types import SimpleNamespace

import asyncpg
import pytest
from click.testing import CliRunner

from core.cli.commands import operations
from core.cli.main import main
from core.settings.settings import Settings
from core.wiring.bootstrap import local_issuer
from features.credits.domain.ledger import Finding
from infrastructure.identity.keys import FixedKey, load_pem
from infrastructure.identity.verifier import JwtVerifier
from tests.conftest import PROJECT
from tests.integration.database.rows import NEW_MODEL_CALL, NEW_SCRAPE
from tests.unit.core.settings.test_settings import SERVER

pytestmark = pytest.mark.usefixtures("kept_logging")


@pytest.fixture
def oslira(tmp_path):
    """Runs a command in its own folder with the given variables and options."""

    def run(*arguments, **environ):
        return CliRunner().invoke(main, arguments, env={"OSLIRA_DATA_DIR": str(tmp_path), **environ})

    return run


@pytest.fixture
def closed_port():
    """A port on which no server listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def issuer(tmp_path):
    return local_issuer(Settings(data_dir=tmp_path))


@pytest.fixture
def verify(issuer):
    identity = Settings().identity
    keys = FixedKey(load_pem(issuer.public_key, "ES256"))
    return JwtVerifier(keys, algorithm="ES256", issuer=identity.issuer, audience=identity.audience).verify


def test_help_lists_every_command(oslira):
    answer = oslira("--help")

    assert answer.exit_code == 0
    commands = "serve api worker run migrate token simulators health providers costs credits webhooks"
    for command in f"{commands} analyze bulk runs leads cron scheduler billing".split():
        assert f"\n  {command} " in answer.output


@pytest.mark.parametrize(
    "command",
    [
        ["serve"],
        ["api"],
        ["worker"],
        ["scheduler"],
        ["run"],
        ["migrate"],
        ["token"],
        ["simulators"],
        ["health"],
        ["providers"],
        ["costs"],
        ["credits"],
        ["credits", "audit"],
        ["credits", "expire"],
        ["webhooks"],
        ["webhooks", "add"],
        ["cron"],
        ["cron", "list"],
        ["cron", "run"],
        ["cron", "history"],
        ["analyze"],
        ["bulk"],
        ["leads"],
        ["runs"],
        ["runs", "list"],
        ["runs", "show"],
        ["runs", "cancel"],
        ["runs", "retry"],
        ["runs", "watch"],
    ],
    ids=" ".join,
)
def test_every_command_has_a_help_text(oslira, command):
    answer = oslira(*command, "-h")

    assert answer.exit_code == 0
    assert len(answer.output.splitlines()) > 3


async def test_verifier_accepts_a_signed_token(oslira, verify):
    answer = oslira("token", "ada@example.com", "--hours", "2")

    claims = await verify(answer.stdout.strip())
    assert (claims["email"], claims["exp"] - claims["iat"]) == ("ada@example.com", 7_200)
    assert "oslira_role" not in claims["app_metadata"]
    assert answer.exit_code == 0


async def test_operators_token_has_the_operator_claim(oslira, verify):
    answer = oslira("token", "ada@example.com", "--operator")

    claims = await verify(answer.stdout.strip())
    assert claims["app_metadata"]["oslira_role"] == "operator"


@pytest.mark.parametrize(
    "command", [["token", "ada@example.com"], ["run", "--once"], ["simulators"]], ids=" ".join
)
def test_only_a_local_environment_signs_tokens_and_simulates(oslira, tmp_path, command):
    answer = oslira(*command, **SERVER)

    assert answer.exit_code == 1
    assert "local environment" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["token", "ada@example.com"], ["run", "--once"]], ids=" ".join)
def test_tokens_that_the_server_would_not_accept_are_not_signed(oslira, command):
    answer = oslira(*command, OSLIRA_JWT_JWKS_URL="https://id.example/jwks.json")

    assert answer.exit_code == 1
    assert "local environment" in answer.stderr


@pytest.mark.parametrize("hours", ["0", "-1", "9000", "x", "nan"])
def test_a_tokens_lifetime_is_bounded(oslira, hours):
    answer = oslira("token", "ada@example.com", "--hours", hours)

    assert answer.exit_code == 2
    assert "--hours" in answer.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["serve"],
        ["api"],
        ["worker"],
        ["scheduler"],
        ["run"],
        ["migrate"],
        ["token", "a@example.com"],
        ["simulators"],
        ["health"],
        ["credits", "audit"],
        ["credits", "expire"],
    ],
    ids=" ".join,
)
def test_invalid_settings_are_listed_without_a_traceback(oslira, command):
    answer = oslira(*command, OSLIRA_PORT="x", OSLIRA_ENVIRONMENT="prod")

    assert answer.exit_code == 1
    assert "  - OSLIRA_PORT is 'x'; use a whole number" in answer.stderr
    assert "  - OSLIRA_ENVIRONMENT is 'prod'; use local, staging or production." in answer.stderr
    assert "Traceback" not in answer.output


def test_a_port_outside_the_range_is_refused_before_anything_starts(oslira):
    answer = oslira("serve", "--port", "65536")

    assert answer.exit_code == 2
    assert "--port" in answer.stderr


def test_occupied_port_is_reported_with_a_solution(oslira):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        answer = oslira("serve", "--port", str(port))

    assert answer.exit_code == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in answer.stderr
    assert "--port" in answer.stderr


def test_health_of_a_server_that_is_not_there_says_how_to_start_it(oslira, closed_port):
    answer = oslira("health", OSLIRA_PORT=closed_port)

    assert answer.exit_code == 1
    assert f"No server responds at http://127.0.0.1:{closed_port}." in answer.stderr
    assert "oslira serve" in answer.stderr


@pytest.mark.parametrize(
    "url", ["127.0.0.1:1", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://[", "http://127.0.0.1:x"]
)
def test_health_of_an_invalid_url_is_not_a_traceback(oslira, url):
    answer = oslira("health", "--url", url)

    assert answer.exit_code == 1
    assert "No server responds at" in answer.stderr


@pytest.fixture
async def stranger():
    """Starts a server that sends the given response to every request."""
    servers = []

    async def start(body, status="200 OK"):
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            writer.close()

        servers.append(await asyncio.start_server(answer, "127.0.0.1", 0))
        return f"http://127.0.0.1:{servers[-1].sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("body", [b"<html>", b"", b"{}", b"[]", b'{"status": "ok"}', b"null"])
async def test_health_of_a_server_that_is_not_ours_is_not_a_traceback(oslira, stranger, body):
    url = await stranger(body)

    answer = await asyncio.to_thread(oslira, "health", "--url", url)

    assert answer.exit_code == 1
    assert answer.stderr.startswith("Error: ")


@pytest.mark.parametrize(("status", "exit_code"), [("ready", 0), ("not_ready", 1)])
async def test_health_shows_each_binding_and_exits_by_readiness(oslira, stranger, status, exit_code):
    bindings = {"database": {"ok": exit_code == 0, "mode": "real", "detail": "PostgreSQL"}}
    readiness = {"status": status, "environment": "local", "version": "0.1.0", "bindings": bindings}
    url = await stranger(json.dumps(readiness).encode())

    answer = await asyncio.to_thread(oslira, "health", "--url", url)

    assert answer.exit_code == exit_code
    assert ("database" in answer.stdout, "PostgreSQL" in answer.stdout) == (True, True)
    assert ("yes" if exit_code == 0 else "no") in answer.stdout


@pytest.mark.parametrize(("status", "exit_code"), [("ready", 0), ("not_ready", 1)])
async def test_health_without_an_operators_token_shows_the_status(oslira, stranger, status, exit_code):
    url = await stranger(json.dumps({"status": status}).encode())

    answer = await asyncio.to_thread(oslira, "health", "--url", url)

    assert answer.exit_code == exit_code
    assert f"{status}. For details" in " ".join(answer.stdout.split())


async def test_migrating_a_database_that_is_up_to_date_says_so(oslira, addresses):
    answer = await asyncio.to_thread(oslira, "migrate", DATABASE_URL=addresses.owner)

    assert (answer.exit_code, answer.stdout.splitlines()[0]) == (0, "The schema is up to date.")


async def test_migrating_an_empty_database_names_what_was_applied(oslira, cluster, owner):
    name = f"t_{uuid.uuid4().hex[:12]}"
    await owner.execute(f'create database "{name}"')

    answer = await asyncio.to_thread(oslira, "migrate", DATABASE_URL=cluster.url(name))
    again = await asyncio.to_thread(oslira, "migrate", DATABASE_URL=cluster.url(name))
    await owner.execute(f'drop database "{name}" with (force)')

    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[0] == "applied 0001_roles.sql"
    assert re.fullmatch(r"added \d+ prices", answer.stdout.splitlines()[-1])
    assert (again.exit_code, again.stdout) == (0, "The schema is up to date.\n")


async def test_contradicting_prices_are_reported_without_a_traceback(oslira, spoilable_addresses):
    connection = await asyncpg.connect(spoilable_addresses.owner)
    await connection.execute(
        "insert into unit_prices values ('apify', 'run', '2025-01-01T00:00:00Z', 1, 'by hand')"
    )
    await connection.close()

    answer = await asyncio.to_thread(oslira, "migrate", DATABASE_URL=spoilable_addresses.owner)

    assert answer.exit_code == 1
    assert "The price of apify run from 2025-01-01 is another in the database" in answer.stderr


async def test_every_provider_is_checked_once_and_shown_with_its_mode(oslira, spoilable_addresses):
    answer = await asyncio.to_thread(
        oslira, "providers", DATABASE_URL=spoilable_addresses.owner, OSLIRA_SIMULATED_LATENCY="0"
    )

    lines = [re.sub(r"[^\w.@-]+", " ", line).strip() for line in answer.stdout.splitlines()]
    assert answer.exit_code == 0
    assert any(line.startswith("openai simulated gpt-5-mini yes answered") for line in lines)
    assert any(line.startswith("anthropic simulated claude-haiku-5-5 yes answered") for line in lines)
    assert any(line.startswith("openai simulated embeddings yes answered") for line in lines)
    assert any(line.startswith("apify simulated profile @instagram yes answered") for line in lines)
    assert any(line.startswith("stripe simulated prices yes answered") for line in lines)


async def test_provider_that_does_not_respond_is_named_and_the_command_fails(
    oslira, spoilable_addresses, closed_port
):
    answer = await asyncio.to_thread(
        oslira,
        "providers",
        DATABASE_URL=spoilable_addresses.owner,
        OSLIRA_SIMULATED_LATENCY="0",
        ANTHROPIC_API_KEY="sk-canary",
        ANTHROPIC_BASE_URL=f"http://127.0.0.1:{closed_port}",
    )

    lines = [re.sub(r"[^\w.@-]+", " ", line).strip() for line in answer.stdout.splitlines()]
    assert answer.exit_code == 1
    assert any(line.startswith("anthropic real claude-haiku-5-5 no connection") for line in lines)
    assert any(line.startswith("openai absent embeddings no models_unavailable") for line in lines)
    assert "canary" not in answer.output


async def test_empty_cost_table_is_shown_as_a_sentence(oslira, spoilable_addresses):
    answer = await asyncio.to_thread(oslira, "costs", "--days", "7", DATABASE_URL=spoilable_addresses.owner)

    assert (answer.exit_code, answer.stdout) == (0, "No provider calls in the last 7 days.\n")


async def test_costs_are_a_table_by_model_and_task_with_a_sum(oslira, spoilable_addresses):
    connection = await asyncpg.connect(spoilable_addresses.owner)
    for _ in range(2):
        await connection.execute(NEW_MODEL_CALL, None, None)
    await connection.execute(NEW_SCRAPE, None, None)
    await connection.close()

    answer = await asyncio.to_thread(oslira, "costs", DATABASE_URL=spoilable_addresses.owner)

    lines = [re.sub(r"[^\w.]+", " ", line).strip() for line in answer.stdout.splitlines()]
    assert answer.exit_code == 0
    assert "apify simulated scrape 1 0 0 0 0 0 0.003000 USD" in lines
    assert "openai simulated gpt 5 mini light 2 0 0 0 20 10 0.000025 USD" in lines
    assert "total 3 0 0 0 20 10 0.003025 USD" in lines


@pytest.mark.parametrize("days", ["0", "91", "x"])
def test_costs_accept_one_to_ninety_days(oslira, days):
    answer = oslira("costs", "--days", days)

    assert answer.exit_code == 2
    assert "--days" in answer.stderr


def test_migrating_needs_the_owners_address(oslira):
    answer = oslira(
        "migrate",
        OSLIRA_DATABASE_USER_URL="postgresql://u:p@127.0.0.1:1/d",
        OSLIRA_DATABASE_ADMIN_URL="postgresql://u:p@127.0.0.1:1/d",
    )

    assert answer.exit_code == 1
    assert "Set DATABASE_URL" in answer.stderr


@pytest.mark.parametrize("command", [["migrate"], ["credits", "audit"], ["credits", "expire"]], ids=" ".join)
async def test_a_database_that_does_not_answer_is_not_a_traceback(oslira, closed_port, command):
    url = f"postgresql://owner:canary@127.0.0.1:{closed_port}/oslira"

    answer = await asyncio.to_thread(oslira, *command, DATABASE_URL=url)

    assert answer.exit_code == 1
    assert answer.stderr.startswith("Error: ")
    assert "canary" not in answer.output


async def test_audit_of_a_consistent_ledger_reports_success(oslira, addresses):
    answer = await asyncio.to_thread(oslira, "credits", "audit", DATABASE_URL=addresses.owner)

    assert answer.exit_code == 0
    assert answer.stdout.startswith("The ledger is consistent")


async def test_audit_of_a_consistent_ledger_prints_no_json(oslira, addresses):
    answer = await asyncio.to_thread(oslira, "credits", "audit", "--json", DATABASE_URL=addresses.owner)

    assert (answer.exit_code, answer.stdout) == (0, "")


FINDING = Finding(account_id=uuid.uuid4(), finding="balance_differs", expected=5, found=7)


@pytest.fixture
def inconsistent_ledger(monkeypatch):
    """Lets the command find an application whose ledger is inconsistent."""

    class InconsistentLedger:
        async def audit(self):
            return [FINDING]

    @contextlib.asynccontextmanager
    async def build(_):
        yield SimpleNamespace(get=lambda _: InconsistentLedger())

    monkeypatch.setattr(operations, "build", build)


@pytest.mark.usefixtures("inconsistent_ledger")
async def test_audit_of_an_inconsistent_ledger_shows_the_findings_and_fails(oslira):
    answer = await asyncio.to_thread(oslira, "credits", "audit")

    assert answer.exit_code == 1
    assert "balance_differs" in answer.stdout
    assert "consistent" not in answer.stdout


@pytest.mark.usefixtures("inconsistent_ledger")
async def test_findings_as_json_are_one_object_per_line(oslira):
    answer = await asyncio.to_thread(oslira, "credits", "audit", "--json")

    assert answer.exit_code == 1
    assert [json.loads(line) for line in answer.stdout.splitlines()] == [
        {"account_id": str(FINDING.account_id), "finding": "balance_differs", "expected": 5, "found": 7}
    ]


async def test_expire_prints_the_number_of_expired_credits(oslira, addresses, owner, tenant):
    await owner.execute(
        "select ledger.grant_credits($1, 7, 'lapsed', 'admin_grant', now() - interval '1 day', null)",
        tenant.account_id,
    )

    first = await asyncio.to_thread(oslira, "credits", "expire", DATABASE_URL=addresses.owner)
    second = await asyncio.to_thread(oslira, "credits", "expire", DATABASE_URL=addresses.owner)

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert int(first.stdout.split()[0]) >= 7
    assert second.stdout == "0 credits of 0 accounts expired.\n"


async def test_the_module_runs_as_a_program_of_its_own(tmp_path, verify):
    environ = {**os.environ, "PYTHONPATH": "src", "OSLIRA_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "core.cli.main", "token", "ada@example.com"]

    done = await asyncio.to_thread(
        subprocess.run, command, cwd=PROJECT, env=environ, capture_output=True, text=True, check=True
    )

    assert (await verify(done.stdout.strip()))["email"] == "ada@example.com"
    assert done.stderr == ""


def test_worker_for_an_unknown_queue_does_not_start(oslira):
    answer = oslira("worker", "--queues", "runs,nonsense")

    assert answer.exit_code == 2
    assert "nonsense: the queues are runs" in answer.output
