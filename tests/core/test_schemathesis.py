"""Schemathesis against a real server: every operation, every check, every phase.

The suite sends customers' requests, each value as it should and as it should not be; the battery also those
of operators and keys, at random and in sequences.
What it is told beforehand, and why, stands in ``fuzzing/schemathesis.toml`` and ``fuzzing/rules.py``.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx
import pytest

from tests.conftest import PROJECT
from tests.infrastructure.database.rows import NEW_PROFILE, new_analysis

SEED = 25
FUZZING = PROJECT / "tests" / "core" / "fuzzing"
KEY = {
    "name": "key",
    "scopes": [
        *("account:read", "credits:read", "business_profiles:read", "business_profiles:write"),
        *("runs:read", "runs:write", "leads:read", "leads:write"),
        *("billing:read", "webhooks:read", "webhooks:manage"),
    ],
}


@dataclass
class Stage:
    """A server of its own, and an account on the pro plan in which somebody else is an admin: whatever
    they do, they cannot delete it. It has a lead.
    """

    address: str
    account_id: str
    tokens: dict[str, str]


@pytest.fixture
async def stage(start, spoilable_addresses, token):
    owner = await asyncpg.connect(spoilable_addresses.owner)
    await owner.execute("update rate_limits set requests_max = 1000000000")
    _, port = await start(DATABASE_URL=spoilable_addresses.owner)
    tokens = {"operator": token(is_operator=True), "user": token()}
    address = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=address) as client:
        theirs, mine = [
            (await client.get("/v1/me", headers={"Authorization": f"Bearer {tokens[who]}"})).json()
            for who in ("operator", "user")
        ]
        account_id = theirs["account"]["id"]
        await owner.execute("update accounts set plan = 'pro' where id = $1", UUID(account_id))
        await owner.execute(
            "insert into memberships (account_id, user_id, role) values ($1, $2, 'admin')",
            *(UUID(account_id), UUID(mine["id"])),
        )
        await owner.execute(NEW_PROFILE, UUID(account_id))
        await new_analysis(owner, UUID(account_id))
        headers = {"Authorization": f"Bearer {tokens['operator']}"}
        tokens["key"] = (await client.post("/v1/api-keys", headers=headers, json=KEY)).json()["key"]
    await owner.close()
    return Stage(address, account_id, tokens)


@pytest.fixture
def findings(stage, tmp_path_factory):
    """A function: let schemathesis loose as somebody; what it found, or nothing."""

    async def run(who, *options):
        # A key has its account, so only there the header is left to be generated.
        chosen = () if who == "key" else ("--header", f"Oslira-Account: {stage.account_id}")
        process = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).with_name("st"), "--config-file", FUZZING / "schemathesis.toml"),
            *("run", f"{stage.address}/schema/openapi.json", *chosen),
            *("--seed", str(SEED), "--continue-on-failure", "--no-color", *options),
            cwd=tmp_path_factory.mktemp(who),
            env={
                **os.environ,
                "PYTHONPATH": str(PROJECT),
                "SCHEMATHESIS_HOOKS": "tests.core.fuzzing.rules",
                "OSLIRA_TOKEN": stage.tokens[who],
                "OSLIRA_ACCOUNT": stage.account_id,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        assert "Test cases:" in output, output
        return "" if process.returncode == 0 else output

    print("seed", SEED)  # noqa: T201  to repeat what was found
    return run


async def test_what_the_document_shows_as_an_example_is_accepted_and_answered_as_it_says(findings):
    found = await findings("operator", "--phases", "examples")

    assert not found, found


@pytest.mark.battery
@pytest.mark.parametrize("who", ["user", "operator", "key"])
async def test_every_operation_keeps_to_its_document_for_long(findings, who):
    found = await findings(who, "--max-examples", "100")

    assert not found, found
