"""Invitations by e-mail: sending, accepting, withdrawing and limits."""

import dataclasses
import uuid

import pytest

from features.auth.application import invitations as invitations_module
from features.auth.domain.errors import InvitationNotSent
from tests.conftest import client_for
from tests.support.problems import assert_problem


class Postbox:
    """Fake of the identity service's mail, which has its own integration tests."""

    def __init__(self):
        self.letters = []
        self.is_broken = False

    async def send(self, email, *, link, account_name, inviter):
        if self.is_broken:
            raise InvitationNotSent
        self.letters.append({"email": email, "link": link, "account_name": account_name, "inviter": inviter})

    def token(self, number=-1):
        return self.letters[number]["link"].rpartition("token=")[2]


@pytest.fixture(scope="session")
def postbox():
    return Postbox()


@pytest.fixture(autouse=True)
def empty(postbox):
    postbox.letters.clear()
    postbox.is_broken = False


@pytest.fixture(scope="module")
async def client(application, postbox):
    invitations = dataclasses.replace(application.dependencies["invitations"], mail=postbox)
    async with client_for(application.replacing(invitations=invitations)) as client:
        yield client


def invitations_of(person):
    return f"/v1/accounts/{person.account_id}/invitations"


def accept(person, token):
    return person.post("/v1/invitations/accept", {"token": token})


async def test_invited_user_who_accepts_is_a_member(ada, person, postbox):
    grace = await person()

    sent = await ada.post(invitations_of(ada), {"email": grace.email, "role": "admin"})
    accepted = await accept(grace, postbox.token())

    assert (sent.status_code, sent.json()["email"], sent.json()["role"]) == (201, grace.email, "admin")
    assert sent.json()["sent_at"] is not None
    assert postbox.letters == [
        {
            "email": grace.email,
            "link": f"http://127.0.0.1:3000/invitations/accept?token={postbox.token()}",
            "account_name": ada.email.partition("@")[0],
            "inviter": ada.email,
        }
    ]
    assert (accepted.status_code, accepted.json()["id"], accepted.json()["role"]) == (
        200,
        ada.account_id,
        "admin",
    )
    assert (await grace.choosing(ada.account_id).get("/v1/api-keys")).status_code == 200
    assert (await ada.get(invitations_of(ada))).json()["items"] == []


async def test_accepting_again_is_idempotent_and_other_users_are_rejected(ada, person, postbox, stranger):
    grace = await person()
    await ada.post(invitations_of(ada), {"email": grace.email})
    await accept(grace, postbox.token())

    again = await accept(grace, postbox.token())

    assert (again.status_code, again.json()["role"]) == (200, "member")
    assert_problem(await accept(stranger, postbox.token()), 403, "invitation_for_another_user")


async def test_invited_address_is_case_insensitive(ada, person, postbox):
    grace = await person(f"{uuid.uuid4().hex}@Example.com")

    await ada.post(invitations_of(ada), {"email": grace.email.upper()})

    assert (await accept(grace, postbox.token())).status_code == 200


async def test_removed_member_cannot_rejoin_with_the_old_link(ada, person, postbox):
    grace = await person()
    await ada.post(invitations_of(ada), {"email": grace.email})
    await accept(grace, postbox.token())
    await ada.delete(f"/v1/accounts/{ada.account_id}/members/{grace.user_id}")

    assert_problem(await accept(grace, postbox.token()), 404, "account_not_found")


async def test_invitations_sent_by_a_removed_member_are_closed(ada, join, person, postbox):
    admin, grace, alan = await join(ada.account_id, "admin"), await person(), await person()
    sent = (await admin.post(invitations_of(ada), {"email": grace.email, "role": "admin"})).json()
    await ada.post(invitations_of(ada), {"email": alan.email})

    removal = await ada.delete(f"/v1/accounts/{ada.account_id}/members/{admin.user_id}")

    assert removal.json()["invitations"] == [sent]
    assert_problem(await accept(grace, postbox.token(0)), 404, "invitation_not_found")
    assert (await accept(alan, postbox.token(1))).status_code == 200
    assert (await ada.get(invitations_of(ada))).json()["items"] == []


async def test_second_invitation_invalidates_the_first_link(ada, person, postbox):
    grace = await person()
    first = (await ada.post(invitations_of(ada), {"email": grace.email, "role": "viewer"})).json()
    second = (await ada.post(invitations_of(ada), {"email": grace.email, "role": "member"})).json()

    assert first["id"] == second["id"]
    assert_problem(await accept(grace, postbox.token(0)), 404, "invitation_not_found")
    assert (await accept(grace, postbox.token(1))).json()["role"] == "member"


async def test_withdrawn_expired_and_unknown_links_are_not_found(ada, person, postbox, owner):
    grace, alan = await person(), await person()
    withdrawn = (await ada.post(invitations_of(ada), {"email": grace.email})).json()
    await ada.post(invitations_of(ada), {"email": alan.email})
    await owner.execute("update invitations set expires_at = now() where email = $1", alan.email)

    answer = await ada.delete(f"{invitations_of(ada)}/{withdrawn['id']}")

    assert answer.status_code == 204
    for joined, token in ((grace, postbox.token(0)), (alan, postbox.token(1)), (grace, "invented")):
        assert_problem(await accept(joined, token), 404, "invitation_not_found")
    assert_problem(await ada.delete(f"{invitations_of(ada)}/{withdrawn['id']}"), 404, "invitation_not_found")


async def test_invitation_survives_a_failed_mail_and_a_retry_sends_it(ada, person, postbox):
    grace = await person()
    postbox.is_broken = True

    failed = await ada.post(invitations_of(ada), {"email": grace.email})
    waiting = (await ada.get(invitations_of(ada))).json()["items"]
    postbox.is_broken = False
    sent = await ada.post(invitations_of(ada), {"email": grace.email})

    assert_problem(failed, 503, "invitation_not_sent")
    assert [(one["email"], one["sent_at"]) for one in waiting] == [(grace.email, None)]
    assert sent.json()["id"] == waiting[0]["id"]
    assert (await accept(grace, postbox.token())).status_code == 200


async def test_one_idempotency_key_sends_one_mail(ada, postbox):
    headers = {"Idempotency-Key": str(uuid.uuid4())}

    answers = [
        await ada.post(invitations_of(ada), {"email": "once@example.com"}, headers=headers) for _ in range(2)
    ]

    assert answers[0].content == answers[1].content
    assert len(postbox.letters) == 1


async def test_inviting_a_member_is_a_conflict(ada, join):
    member = await join(ada.account_id, "member")

    assert_problem(await ada.post(invitations_of(ada), {"email": member.email}), 409, "already_member")


@pytest.mark.parametrize(
    ("role", "invited_as", "code"), [("admin", "member", None), ("admin", "owner", "owners_only")]
)
async def test_role_of_the_inviter_limits_the_invited_role(ada, join, postbox, role, invited_as, code):
    joined = await join(ada.account_id, role)

    answer = await joined.post(
        invitations_of(ada), {"email": f"{uuid.uuid4().hex}@example.com", "role": invited_as}
    )

    assert answer.json().get("code") == code
    assert len(postbox.letters) == (code is None)


async def test_invalid_address_is_rejected(ada, postbox):
    assert_problem(await ada.post(invitations_of(ada), {"email": "a@b"}), 400, "invalid_request")
    assert postbox.letters == []


async def test_open_invitations_are_paged_and_limited(ada, monkeypatch):
    monkeypatch.setattr(invitations_module, "OPEN_MAX", 3)
    answers = [await ada.post(invitations_of(ada), {"email": f"{number}@example.com"}) for number in range(4)]

    first = (await ada.get(f"{invitations_of(ada)}?limit=2")).json()
    second = (await ada.get(f"{invitations_of(ada)}?limit=2&cursor={first['next_cursor']}")).json()

    assert_problem(answers[3], 402, "invitations_limit")
    emails = [one["email"] for one in first["items"] + second["items"]]
    assert emails == ["2@example.com", "1@example.com", "0@example.com"]


async def test_foreign_invitations_are_not_found(ada, stranger):
    theirs = (await stranger.post(invitations_of(stranger), {"email": "x@example.com"})).json()

    for answer in (
        await ada.get(invitations_of(stranger)),
        await ada.post(invitations_of(stranger), {"email": "y@example.com"}),
        await ada.delete(f"{invitations_of(stranger)}/{theirs['id']}"),
    ):
        assert_problem(answer, 404, "account_not_found")
    assert_problem(await ada.delete(f"{invitations_of(ada)}/{theirs['id']}"), 404, "invitation_not_found")


async def test_token_is_stored_as_a_hash(ada, postbox, owner):
    await ada.post(invitations_of(ada), {"email": "canary@example.com"})

    kept = await owner.fetchval("select string_agg(to_jsonb(i)::text, '') from invitations as i")

    assert postbox.token() not in kept
    assert postbox.token().encode().hex() not in kept
