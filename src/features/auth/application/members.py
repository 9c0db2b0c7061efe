from dataclasses import dataclass

from features.auth.application import ports
from features.auth.domain.roles import Role
from features.auth.domain.roster import Member
from shared.caller import AccountNotFound, Caller
from shared.ids import AccountId, UserId
from shared.pages import Page, Place, decode_place, page_of


@dataclass(frozen=True, slots=True)
class Members:
    """Who belongs to an account. Rules are checked under its lock, so that two changes at once cannot
    leave it without an owner.
    """

    members: ports.Members

    async def page(
        self, caller: Caller, account_id: AccountId, *, cursor: str | None, limit: int
    ) -> Page[Member]:
        after = decode_place(cursor)
        found = await self.members.list(caller, account_id, after=after, members_max=limit + 1)
        if not found and after is None:  # an account has a member: this one is not the caller's
            raise AccountNotFound
        return page_of(found, limit, lambda member: Place(member.created_at, member.user_id))

    async def change_role(self, caller: Caller, account_id: AccountId, user_id: UserId, role: Role) -> Member:
        async with self.members.transaction():
            roster = await self.members.lock(account_id)
            roster.check_change(caller.user_id, user_id, role)
            return await self.members.change_role(account_id, user_id, role)

    async def remove(self, caller: Caller, account_id: AccountId, user_id: UserId) -> None:
        """To remove oneself is to leave."""
        async with self.members.transaction():
            roster = await self.members.lock(account_id)
            roster.check_removal(caller.user_id, user_id)
            await self.members.remove(account_id, user_id)
