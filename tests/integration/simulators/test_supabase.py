"""Simulated Supabase Auth."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from supabase import AsyncClient, AsyncClientOptions, AuthApiError

from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.tokens import LocalIssuer, user_id_of
from infrastructure.identity.verifier import JwtVerifier
from simulators.supabase import SERVICE_ROLE_KEY
from simulators.supervisor import Simulators
from tests.support.simulated import AUDIENCE, ISSUER

KEYS = {"apikey": SERVICE_ROLE_KEY, "Authorization": f"Bearer {SERVICE_ROLE_KEY}"}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def simulators(data_dir):
    simulators = Simulators((str(data_dir), ISSUER, AUDIENCE))
    yield simulators
    await simulators.close()


@pytest.fixture(scope="module")
async def http(simulators):
    async with httpx.AsyncClient(base_url=await simulators.address(), headers=KEYS) as http:
        yield http


@pytest.fixture(scope="module")
async def supabase(simulators, http):
    """The admin API of the real SDK, connected to the simulator."""
    options = AsyncClientOptions(httpx_client=http, auto_refresh_token=False, persist_session=False)
    return AsyncClient(await simulators.address(), SERVICE_ROLE_KEY, options).auth


@pytest.fixture
def outbox(data_dir):
    """A function: the e-mail to an address, oldest first."""

    def read(email):
        lines = (data_dir / "outbox.jsonl").read_text().splitlines()
        return [mail for mail in map(json.loads, lines) if mail["to"] == email]

    return read


async def test_invitation_is_a_line_in_the_outbox_with_its_link(supabase, outbox):
    link = "https://app.example/join?token=abc&x=1"

    answer = await supabase.admin.invite_user_by_email(
        "Ada@example.com", {"redirect_to": link, "data": {"account_name": "Looms"}}
    )

    (mail,) = outbox("ada@example.com")
    assert (mail["subject"], mail["link"]) == ("You have been invited", link)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(mail["at"])) < timedelta(minutes=1)
    assert (answer.user.id, answer.user.email) == (str(user_id_of("ada@example.com")), "ada@example.com")
    assert answer.user.user_metadata == {"account_name": "Looms"}


async def test_existing_user_gets_a_sign_in_link_instead_of_an_invitation(supabase, outbox):
    await supabase.admin.invite_user_by_email("known@example.com")

    with pytest.raises(AuthApiError) as refusal:
        await supabase.admin.invite_user_by_email("Known@example.com")
    await supabase.sign_in_with_otp({"email": "known@example.com", "options": {"should_create_user": False}})

    assert (refusal.value.status, refusal.value.code) == (422, "email_exists")
    assert [mail["subject"] for mail in outbox("known@example.com")] == [
        "You have been invited",
        "Your sign-in link",
    ]


async def test_unknown_address_gets_a_link_only_if_a_user_is_created(supabase, outbox):
    with pytest.raises(AuthApiError) as refusal:
        await supabase.sign_in_with_otp(
            {"email": "new@example.com", "options": {"should_create_user": False}}
        )
    await supabase.sign_in_with_otp({"email": "new@example.com"})

    assert (refusal.value.status, refusal.value.code) == (422, "otp_disabled")
    assert len(outbox("new@example.com")) == 1


async def test_users_are_listed_and_removed(supabase):
    user = (await supabase.admin.invite_user_by_email("gone@example.com")).user
    listed = {user.email for user in await supabase.admin.list_users(page=1, per_page=1_000)}

    await supabase.admin.delete_user(user.id)
    with pytest.raises(AuthApiError) as refusal:
        await supabase.admin.delete_user(user.id)

    assert "gone@example.com" in listed
    assert "gone@example.com" not in {user.email for user in await supabase.admin.list_users()}
    assert (refusal.value.status, refusal.value.code) == (404, "user_not_found")


async def test_users_are_listed_by_page(supabase):
    for number in range(3):
        await supabase.admin.invite_user_by_email(f"page-{number}@example.com")

    first, second = [await supabase.admin.list_users(page=page, per_page=2) for page in (1, 2)]

    assert len(first) == 2
    assert {user.id for user in first}.isdisjoint({user.id for user in second})


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/invite"), ("GET", "/admin/users"), ("DELETE", "/admin/users/x"), ("POST", "/otp")],
)
@pytest.mark.parametrize(
    "headers",
    [{"apikey": ""}, {"apikey": "wrong"}, {"apikey": "wrong", "Authorization": "Bearer wrong"}],
    ids=str,
)
async def test_request_without_the_key_is_rejected(http, method, path, headers):
    answer = await http.request(
        method, f"/auth/v1{path}", headers=headers, json={"email": "thief@example.com"}
    )

    assert (answer.status_code, answer.json()["code"]) == (401, "no_authorization")


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", SERVICE_ROLE_KEY])
async def test_admin_request_needs_the_service_role_as_bearer_token(http, authorization):
    answer = await http.get("/auth/v1/admin/users", headers={"Authorization": authorization})

    assert answer.status_code == 401


@pytest.mark.parametrize("body", [{}, {"email": "no address"}, {"email": 1}, [], "x"], ids=str)
async def test_invalid_address_is_rejected(http, body):
    answer = await http.post("/auth/v1/invite", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")


async def test_local_tokens_are_verified_with_the_published_key(simulators, data_dir):
    issuer = LocalIssuer(data_dir / "identity", issuer=ISSUER, audience=AUDIENCE)
    keys = JwksKeys(f"{await simulators.address()}/auth/v1/.well-known/jwks.json", "ES256")
    verifier = JwtVerifier(keys, algorithm="ES256", issuer=ISSUER, audience=AUDIENCE)

    claims = await verifier.verify(issuer.token("ada@example.com", lifetime=timedelta(hours=1)))
    await keys.close()

    assert claims["sub"] == str(user_id_of("ada@example.com"))


async def test_fault_happens_exactly_the_requested_number_of_times(http):
    fault = {"route": "/auth/v1/admin/users", "status": 429, "body": "slow down", "times": 2}
    await http.post("/_faults", json=fault)

    found = [await http.get("/auth/v1/admin/users") for _ in range(3)]

    assert [answer.status_code for answer in found] == [429, 429, 200]
    assert found[0].text == "slow down"


async def test_fault_applies_to_one_route_and_can_be_removed(http):
    fault = {"route": "/auth/v1/invite", "status": 500, "times": 100}
    await http.post("/_faults", json=fault)
    other = await http.get("/auth/v1/admin/users")
    await http.post("/_faults", json={**fault, "times": 0})

    answer = await http.post("/auth/v1/invite", json={"email": "later@example.com"})

    assert (other.status_code, answer.status_code) == (200, 200)


@pytest.mark.parametrize(
    "fault", [{}, {"route": 1}, {"route": "/", "status": 99}, {"route": "/", "x": 1}], ids=str
)
async def test_invalid_fault_is_rejected(http, fault):
    assert (await http.post("/_faults", json=fault)).status_code == 400
