import uuid

import pytest

from features.business.controllers.request_schemas import PROFILE_BODY_EXAMPLE
from tests.api.business.urls import PROFILES


@pytest.fixture
async def signed_up(client, bearer):
    """Headers of a new user, and their account's id."""
    headers = bearer()
    answer = await client.get("/v1/credits/balance", headers=headers)
    return headers, uuid.UUID(answer.json()["account_id"])


@pytest.fixture
async def headers(owner, signed_up):
    """Headers of a user whose plan allows more profiles."""
    headers, account_id = signed_up
    await owner.execute("update accounts set plan = 'pro' where id = $1", account_id)
    return headers


@pytest.fixture
def create(client, headers):
    async def send(**body):
        answer = await client.post(PROFILES, headers=headers, json={"name": "Alpine Coffee", **body})
        assert answer.status_code == 201, answer.text
        return answer

    return send


@pytest.fixture
async def profile(create):
    return (await create(**PROFILE_BODY_EXAMPLE)).json()


@pytest.fixture
def url(profile):
    return f"{PROFILES}/{profile['id']}"
