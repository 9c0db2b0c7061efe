from dataclasses import dataclass

from features.auth.application import ports
from features.auth.domain.api_keys import ApiKey
from features.auth.domain.invitations import Invitation
from features.auth.domain.memberships import Member
from features.auth.domain.roles import Role
from shared.caller import AccountNotFound, Caller
from shared.ids import AccountId, UserId
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class Removal:
    """Keys and invitations affected by the removal of a member."""

    api_keys: tuple[ApiKey, ...]  # valid keys that the member created: revoked or kept
    invitations: tuple[Invitation, ...]  # open invitations that the member sent: closed


@dataclass(frozen=True, slots=True)
class Members:
    """The members of an account. Rules are checked under the account's lock, so that two concurrent changes
    cannot remove the last owner.
    """

    members: ports.Members
    invitations: ports.Invitations
    keys: ports.ApiKeys

    async def page(
        self, caller: Caller, account_id: AccountId, *, cursor: str | None, limit: int
    ) -> Page[Member]:
        after = decode_cursor(cursor)
        found = await self.members.list(caller, account_id, after=after, members_max=limit + 1)
        if not found and after is None:  # each account has a member, so the caller cannot see this one
            raise AccountNotFound
        return page_of(found, limit, lambda member: Cursor(member.created_at, member.user_id))

    async def change_role(self, caller: Caller, account_id: AccountId, user_id: UserId, role: Role) -> Member:
        async with self.members.transaction():
            roster = await self.members.lock(account_id)
            roster.check_change(caller.user_id, user_id, role)
            return await self.members.change_role(account_id, user_id, role)

    async def remove(
        self, caller: Caller, account_id: AccountId, user_id: UserId, *, keep_keys: bool
    ) -> Removal:
        """Remove a member, or leave when the caller is the member.

        The member's invitations and keys end in the same transaction; with ``keep_keys`` the keys stay valid.
        """
        async with self.members.transaction():
            roster = await self.members.lock(account_id)
            roster.check_removal(caller.user_id, user_id)
            await self.members.remove(account_id, user_id)
            end_keys = self.keys.valid_of if keep_keys else self.keys.revoke_of
            return Removal(
                api_keys=await end_keys(account_id, user_id),
                invitations=await self.invitations.withdraw_of(account_id, user_id),
            )
