"""Invitations with fakes behind their ports."""

import uuid

import pytest
from msgspec.structs import replace

from features.auth.application import invitations as invitations_module
from features.auth.domain.errors import (
    AlreadyMember,
    EmailInvalid,
    InvitationForAnotherUser,
    InvitationNotFound,
    InvitationNotSent,
    OwnersOnly,
    PermissionMissing,
    TooManyInvitations,
)
from features.auth.domain.invitations import LIFETIME, token_hash
from shared.caller import AccountNotFound
from tests.fakes.auth import ACCOUNT, STRANGER, USERS, caller_as
from tests.support import NOON

OWNER, GRACE = caller_as(USERS["owner"]), caller_as(STRANGER)
INVITATION = uuid.UUID(int=5)


@pytest.fixture
def invite(invitations):
    async def invite(email=GRACE.email, *, role="member", caller=OWNER, invitation_id=INVITATION):
        return await invitations.invite(caller, ACCOUNT, invitation_id, email=email, role=role)

    return invite


async def test_invited_address_gets_a_link_whose_token_is_stored_as_a_hash(invite, store, mail):
    invitation = await invite(GRACE.email.upper(), role="admin")

    (token,) = mail.tokens
    link = f"https://app.example/invitations/accept?token={token}"
    assert mail.sent == [
        {"email": GRACE.email, "link": link, "account_name": "Bakery", "inviter": OWNER.email}
    ]
    assert store.tokens == {token_hash(token): INVITATION}
    assert store.invitations == {INVITATION: invitation}
    assert (invitation.expires_at, invitation.sent_at) == (NOON + LIFETIME, NOON)


async def test_user_who_accepts_is_a_member_with_the_invited_role(invitations, invite, store, mail):
    await invite(role="admin")

    account = await invitations.accept(GRACE, mail.tokens[0])

    assert (account.id, account.role) == (ACCOUNT, "admin")
    assert store.roles[ACCOUNT][GRACE.id] == "admin"
    assert store.invitations[INVITATION].closed_at is not None


async def test_accepting_twice_keeps_a_role_changed_in_between(invitations, invite, store, mail):
    await invite(role="admin")
    await invitations.accept(GRACE, mail.tokens[0])
    store.roles[ACCOUNT][GRACE.id] = "viewer"

    assert (await invitations.accept(GRACE, mail.tokens[0])).role == "viewer"


async def test_removed_member_cannot_rejoin_with_the_accepted_link(invitations, invite, store, mail):
    await invite()
    await invitations.accept(GRACE, mail.tokens[0])
    del store.roles[ACCOUNT][GRACE.id]

    with pytest.raises(AccountNotFound):
        await invitations.accept(GRACE, mail.tokens[0])

    assert GRACE.id not in store.roles[ACCOUNT]


async def test_invitation_is_accepted_only_with_the_invited_address(invitations, invite, store, mail):
    await invite()
    other = replace(GRACE, email="other@example.com")

    with pytest.raises(InvitationForAnotherUser):
        await invitations.accept(other, mail.tokens[0])

    assert GRACE.id not in store.roles[ACCOUNT]
    assert store.invitations[INVITATION].closed_at is None


async def test_unknown_token_is_not_found(invitations, invite):
    await invite()

    with pytest.raises(InvitationNotFound):
        await invitations.accept(GRACE, "osl_invite_invented")


async def test_second_invitation_replaces_the_link_and_the_role_of_the_first(invitations, invite, mail):
    first, second = await invite(role="viewer"), await invite(invitation_id=uuid.uuid4())

    assert first.id == second.id
    with pytest.raises(InvitationNotFound):
        await invitations.accept(GRACE, mail.tokens[0])
    assert (await invitations.accept(GRACE, mail.tokens[1])).role == "member"


async def test_unsent_invitation_is_stored_and_sent_by_a_retry(invite, store, mail):
    mail.is_down = True
    with pytest.raises(InvitationNotSent):
        await invite()
    assert store.invitations[INVITATION].sent_at is None

    mail.is_down = False
    await invite()

    assert store.invitations[INVITATION].sent_at == NOON
    assert store.tokens == {token_hash(mail.tokens[0]): INVITATION}


@pytest.mark.parametrize(
    ("inviter", "role", "error"),
    [
        (USERS["admin"], "owner", OwnersOnly),
        (USERS["member"], "viewer", PermissionMissing),
        (USERS["viewer"], "viewer", PermissionMissing),
        (STRANGER, "viewer", AccountNotFound),
    ],
    ids=["admin", "member", "viewer", "stranger"],
)
async def test_inviter_cannot_give_a_role_beyond_the_own_permissions(
    invite, store, mail, inviter, role, error
):
    with pytest.raises(error):
        await invite("new@example.com", role=role, caller=caller_as(inviter))

    assert (store.invitations, mail.sent) == ({}, [])


@pytest.mark.parametrize(
    "email",
    [
        "",
        "x",
        "x@",
        "@x.org",
        "a b@x.org",
        "a@b@c.org",
        "a@b",
        "a\n@x.org",
        "<a@x.org>",
        "a" * 250 + "@x.org",
    ],
)
async def test_invalid_address_is_rejected(invite, store, mail, email):
    with pytest.raises(EmailInvalid):
        await invite(email)

    assert (store.invitations, mail.sent) == ({}, [])


async def test_member_is_not_invited_again(invite, mail):
    with pytest.raises(AlreadyMember):
        await invite(caller_as(USERS["viewer"]).email)

    assert mail.sent == []


async def test_number_of_open_invitations_is_limited(invitations, invite, mail, monkeypatch):
    monkeypatch.setattr(invitations_module, "OPEN_MAX", 2)
    for number in (1, 2):
        await invite(f"new{number}@example.com", invitation_id=uuid.UUID(int=number))

    with pytest.raises(TooManyInvitations) as error:
        await invite()
    await invitations.withdraw(ACCOUNT, uuid.UUID(int=1))
    await invite()

    assert (error.value.code, error.value.facts) == ("invitations_limit", {"limit": 2})
    assert len(mail.sent) == 3


async def test_withdrawn_or_unknown_invitation_cannot_be_withdrawn(invitations, invite):
    await invite()
    await invitations.withdraw(ACCOUNT, INVITATION)

    for invitation_id in (INVITATION, uuid.uuid4()):
        with pytest.raises(InvitationNotFound):
            await invitations.withdraw(ACCOUNT, invitation_id)
