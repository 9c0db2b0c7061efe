"""Schemathesis against a real server: every operation, every check, every phase.

The suite sends a customer's requests with valid and invalid values; the battery also sends those of operators
and API keys, randomly and in sequences. ``fuzzing/schemathesis.toml`` and ``fuzzing/rules.py`` contain the
configuration and its reasons.
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
from tests.integration.database.rows import NEW_PROFILE, new_analysis

SEED = 25
FUZZING = PROJECT / "tests" / "api" / "fuzzing"
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
    """A server with one account on the pro plan and one lead. The user is an admin but not the owner of the
    account, so its requests cannot delete it.
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
    """Runs schemathesis as the given principal; returns its report, empty if nothing was found."""

    async def run(who, *options):
        # A key belongs to one account, so only for a key the account header is generated.
        chosen = () if who == "key" else ("--header", f"Oslira-Account: {stage.account_id}")
        process = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).with_name("st"), "--config-file", FUZZING / "schemathesis.toml"),
            *("run", f"{stage.address}/schema/openapi.json", *chosen),
            *("--seed", str(SEED), "--continue-on-failure", "--no-color", *options),
            cwd=tmp_path_factory.mktemp(who),
            env={
                **os.environ,
                "PYTHONPATH": str(PROJECT),
                "SCHEMATHESIS_HOOKS": "tests.api.fuzzing.rules",
                "OSLIRA_TOKEN": stage.tokens[who],
                "OSLIRA_ACCOUNT": stage.account_id,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        assert "Test cases:" in output, output
        return "" if process.returncode == 0 else output

    print("seed", SEED)  # noqa: T201  to reproduce a finding
    return run


async def test_documented_examples_are_accepted_and_give_documented_responses(findings):
    found = await findings("operator", "--phases", "examples")

    assert not found, found


@pytest.mark.battery
@pytest.mark.parametrize("who", ["user", "operator", "key"])
async def test_every_operation_conforms_to_its_document(findings, who):
    found = await findings(who, "--max-examples", "100")

    assert not found, found
