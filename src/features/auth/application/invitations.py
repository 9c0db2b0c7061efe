from dataclasses import dataclass
from uuid import UUID

from features.auth.application import ports
from features.auth.domain.errors import (
    AlreadyMember,
    InvitationForAnotherUser,
    InvitationNotFound,
    TooManyInvitations,
)
from features.auth.domain.invitations import LIFETIME, Invitation, new_token, tidy_email, token_hash
from features.auth.domain.memberships import Account
from features.auth.domain.roles import Role
from shared.caller import AccountNotFound, Caller
from shared.clock import Clock
from shared.ids import AccountId
from shared.pagination import Cursor, Page, decode_cursor, page_of

OPEN_MAX = 200


@dataclass(frozen=True, slots=True)
class Invitations:
    invitations: ports.Invitations
    members: ports.Members
    accounts: ports.Accounts
    mail: ports.InvitationMail
    frontend_url: str
    now: Clock

    async def invite(
        self, caller: Caller, account_id: AccountId, invitation_id: UUID, *, email: str, role: Role
    ) -> Invitation:
        """Invite an address. Idempotent: a second invitation replaces the link of the first.

        If the mail cannot be sent, the invitation is stored as unsent and the caller repeats the request.
        """
        email = tidy_email(email)
        token = new_token()
        async with self.members.transaction():
            roster = await self.members.lock(account_id)
            roster.check_may_give(caller.user_id, role)
            if await self.members.has_email(account_id, email):
                raise AlreadyMember
            if await self.invitations.count_open(account_id) >= OPEN_MAX:
                raise TooManyInvitations(limit=OPEN_MAX)
            invitation = await self.invitations.open(
                invitation_id,
                account_id,
                email=email,
                role=role,
                token_hash=token_hash(token),
                invited_by=caller.user_id,
                expires_at=self.now() + LIFETIME,
            )
        account = await self.accounts.get(caller, account_id)
        await self.mail.send(
            email,
            link=f"{self.frontend_url}/invitations/accept?token={token}",
            account_name=account.name if account else "",
            inviter=caller.email,
        )
        return await self.invitations.mark_sent(account_id, invitation.id)

    async def page(
        self, caller: Caller, account_id: AccountId, *, cursor: str | None, limit: int
    ) -> Page[Invitation]:
        found = await self.invitations.list(
            caller, account_id, before=decode_cursor(cursor), invitations_max=limit + 1
        )
        return page_of(found, limit, lambda invitation: Cursor(invitation.created_at, invitation.id))

    async def withdraw(self, account_id: AccountId, invitation_id: UUID) -> None:
        if not await self.invitations.withdraw(account_id, invitation_id):
            raise InvitationNotFound

    async def accept(self, caller: Caller, token: str) -> Account:
        """Accept an invitation. Idempotent: a second call returns the account again.

        Only a user who signs in with the invited address can accept.
        """
        async with self.members.transaction():
            invitation = await self.invitations.lock_by_token(token_hash(token))
            if invitation is None:
                raise InvitationNotFound
            if invitation.email != caller.email:
                raise InvitationForAnotherUser
            if invitation.closed_at is None:
                await self.members.add(invitation.account_id, caller.user_id, invitation.role)
                await self.invitations.close(invitation)
        account = await self.accounts.get(caller, invitation.account_id)
        if account is None:  # accepted earlier and removed since
            raise AccountNotFound
        return account
