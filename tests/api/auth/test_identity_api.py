"""Identity endpoints and the first request of a new user."""

import asyncio
import uuid

import jwt
import pytest

from core.wiring.bootstrap import local_issuer
from tests.api.auth.conftest import Person
from tests.support.problems import assert_problem


async def test_verify_returns_the_caller(ada):
    answer = await ada.get("/v1/auth/verify")

    assert answer.status_code == 200
    assert answer.json() == {
        "kind": "user",
        "id": str(ada.user_id),
        "email": ada.email,
        "is_operator": False,
    }


async def test_me_returns_the_user_the_account_and_the_permissions(ada):
    me = (await ada.get("/v1/me")).json()

    assert (me["kind"], me["id"], me["email"]) == ("user", str(ada.user_id), ada.email)
    assert (me["account"]["id"], me["account"]["role"], me["account"]["plan"]) == (
        ada.account_id,
        "owner",
        "free",
    )
    assert "account:delete" in me["permissions"]


async def test_me_of_a_viewer_lists_the_viewers_permissions(ada, join):
    viewer = await join(ada.account_id, "viewer")

    me = (await viewer.get("/v1/me")).json()

    assert me["account"]["role"] == "viewer"
    assert me["permissions"] == [
        "account:read",
        "members:read",
        "credits:read",
        "business_profiles:read",
        "runs:read",
        "leads:read",
    ]


async def test_me_with_several_accounts_and_no_choice_has_no_account(ada):
    await ada.post("/v1/accounts", {"name": "Second"})

    me = (await ada.get("/v1/me")).json()

    assert (me["account"], me["permissions"]) == (None, [])


async def test_me_in_a_foreign_account_is_not_found(ada, stranger):
    assert_problem(await ada.choosing(stranger.account_id).get("/v1/me"), 404, "account_not_found")
    assert_problem(await ada.choosing(uuid.uuid4()).get("/v1/me"), 404, "account_not_found")


async def test_me_of_an_api_key_lists_its_scopes(ada, key_of):
    key = await key_of(ada, "credits:read", project="proj_1", mode="test")

    me = (await key.get("/v1/me")).json()

    assert (me["kind"], me["email"], me["is_test"], me["project"]) == ("api_key", None, True, "proj_1")
    assert (me["account"]["id"], me["account"]["role"]) == (ada.account_id, None)
    assert me["permissions"] == ["credits:read"]


async def test_32_parallel_first_requests_create_one_account_with_one_bonus(client, bearer, owner):
    email = f"{uuid.uuid4().hex}@example.com"
    # One token per request, so that no request uses a cached token.
    headers = [bearer(email) for _ in range(32)]

    answers = await asyncio.gather(*(client.get("/v1/credits/balance", headers=one) for one in headers))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["account_id"] for answer in answers}) == 1
    assert {answer.json()["credits_available"] for answer in answers} == {25}
    account_id = answers[0].json()["account_id"]
    assert (
        await owner.fetchval(
            "select count(*) from credit_entries where account_id = $1", uuid.UUID(account_id)
        )
        == 1
    )


async def test_user_whose_account_was_purged_gets_no_second_bonus(ada, owner, bearer, client):
    await owner.execute("delete from accounts where id = $1", uuid.UUID(ada.account_id))

    me = (await client.get("/v1/me", headers=bearer(ada.email))).json()
    created = await ada.post("/v1/accounts", {"name": "Again"})

    assert me["account"] is None
    assert (await ada.get("/v1/credits/balance")).json()["credits_available"] == 0
    assert created.status_code == 201


async def test_changed_email_address_is_stored(owner, person, client, bearer):
    ada = await person()
    await owner.execute("update sign_ups set email = 'old@example.com' where user_id = $1", ada.user_id)

    await client.get("/v1/me", headers=bearer(ada.email))

    assert await owner.fetchval("select email from sign_ups where user_id = $1", ada.user_id) == ada.email


@pytest.fixture
def with_claims(client, place):
    """Factory that returns the person with a genuine token that has additional claims."""
    kid = local_issuer(place.settings).jwk["kid"]
    signing_key = (place.settings.data_dir / "identity" / "es256.pem").read_text()

    def make(person, **claims):
        token = person.headers["Authorization"].removeprefix("Bearer ")
        claims = jwt.decode(token, options={"verify_signature": False}) | claims
        signed = jwt.encode(claims, signing_key, algorithm="ES256", headers={"kid": kid})
        return Person(client, person.email, {"Authorization": f"Bearer {signed}"}, person.account_id)

    return make


async def test_api_key_id_claim_of_a_token_gives_no_access(ada, stranger, key_of, with_claims):
    key = await key_of(ada, "credits:read")

    intruder = with_claims(stranger, api_key_id=str(key.user_id))

    answer = await intruder.choosing(ada.account_id).get("/v1/credits/balance")
    assert_problem(answer, 404, "account_not_found")
    accounts = (await intruder.get("/v1/accounts")).json()["items"]
    assert [account["id"] for account in accounts] == [stranger.account_id]
