import uuid

import pytest

from features.analysis.domain.requests import NewAnalysis
from shared.caller import Caller
from tests.support import claims_of

ANALYSES = "/v1/analyses"


@pytest.fixture
async def signed_up(client, bearer, owner):
    """Headers of a new user on the pro plan with 25 credits, and their account's id."""
    headers = bearer()
    answer = await client.get("/v1/credits/balance", headers=headers)
    account_id = uuid.UUID(answer.json()["account_id"])
    await owner.execute("update accounts set plan = 'pro' where id = $1", account_id)
    return headers, account_id


@pytest.fixture
def headers(signed_up):
    return signed_up[0]


@pytest.fixture
def account(signed_up):
    return signed_up[1]


@pytest.fixture
async def business(client, headers):
    answer = await client.post("/v1/business-profiles", headers=headers, json={"name": "Alpine Coffee"})
    return answer.json()["id"]


@pytest.fixture
def analyse(client, headers, business):
    """A function that requests an analysis."""

    async def send(username="natgeo", *, query="", extra=None, sender=None, **body):
        body = {"username": username, "business_profile_id": business, "type": "deep", **body}
        sent = {**(sender or headers), **(extra or {})}
        return await client.post(f"{ANALYSES}{query}", headers=sent, json=body)

    return send


@pytest.fixture
def bulk(client, headers, business):
    """A function that requests a bulk analysis."""

    async def send(*usernames, query="", extra=None, sender=None, **body):
        body = {"business_profile_id": business, "type": "light", "usernames": usernames, **body}
        sent = {**(sender or headers), **(extra or {})}
        return await client.post(f"{ANALYSES}/bulk{query}", headers=sent, json=body)

    return send


@pytest.fixture
def key(client, headers):
    """A function that creates an API key and returns its headers."""

    async def make(**options):
        body = {"name": "key", "scopes": ["runs:read", "runs:write"], **options}
        answer = await client.post("/v1/api-keys", headers=headers, json=body)
        return {"Authorization": f"Bearer {answer.json()['key']}"}, uuid.UUID(answer.json()["id"])

    return make


@pytest.fixture
def runs_of(owner, account):
    """A function that returns the account's runs."""

    async def find(columns="*"):
        return await owner.fetch(
            f"select {columns} from runs where account_id = $1 order by created_at", account
        )

    return find


@pytest.fixture
def credits_of(owner, account):
    """A function that returns the account's available and held credits."""

    async def find():
        row = await owner.fetchrow(
            "select credits_available, credits_held from credit_accounts where account_id = $1", account
        )
        return tuple(row)

    return find


@pytest.fixture
async def caller_of(client, headers, account, business):
    """The authenticated caller, and an analysis that they request."""
    user_id = uuid.UUID((await client.get("/v1/me", headers=headers)).json()["id"])
    caller = Caller(id=user_id, claims=claims_of(user_id), chosen_account=account)
    order = NewAnalysis(
        username="natgeo", analysis_type="deep", business_profile_id=uuid.UUID(business), is_fresh=False
    )
    return caller, order
