import uuid

import pytest

from tests.api.business.urls import PROFILES

PROFILE_BODY_EXAMPLE = {
    "name": "Alpine Coffee",
    "website": "https://alpine-coffee.example",
    "industry": "Food and drink",
    "summary": "Small-batch coffee from the Alps, by subscription.",
    "offering": "Three roasts a month, from 19 euros.",
    "target_audience": "People who brew at home and care where beans come from.",
    "value_proposition": "Roasted on Monday, at the door on Wednesday.",
    "tone": "Warm, plain, never pushy",
    "outreach_goal": "Win creators for a tasting box.",
    "language": "en",
    "ideal_customer": {
        "followers_min": 5_000,
        "followers_max": 250_000,
        "engagement_rate_min": 2.5,
        "niches": ["coffee", "slow living"],
        "content_themes": ["brewing", "mornings"],
        "geographies": ["Austria", "Switzerland"],
        "exclusions": ["energy drinks"],
    },
}


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
