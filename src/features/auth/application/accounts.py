from dataclasses import dataclass

from features.auth.application import ports
from features.auth.domain.errors import TooManyAccounts
from features.auth.domain.memberships import Account, tidy_name
from features.auth.domain.roles import ALLOWED
from shared.caller import AccountNotFound, Caller
from shared.ids import AccountId
from shared.pagination import Cursor, Page, decode_cursor, page_of
from shared.permissions import Permission

OWNED_MAX = 20


@dataclass(frozen=True, slots=True)
class Accounts:
    """A user's accounts. An additional account gets no bonus: the bonus is for new users."""

    accounts: ports.Accounts

    async def page(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[Account]:
        found = await self.accounts.mine(caller, before=decode_cursor(cursor), accounts_max=limit + 1)
        return page_of(found, limit, lambda account: Cursor(account.created_at, account.id))

    async def deleted(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[Account]:
        """Return a page of the deleted accounts, last deleted first. The query reads all of them, because
        they are few.
        """
        before = decode_cursor(cursor)
        found = [
            account
            for account in await self.accounts.deleted(caller.user_id)
            if before is None or _deletion(account) < before
        ]
        return page_of(found, limit, _deletion)

    async def get(self, caller: Caller, account_id: AccountId) -> Account:
        account = await self.accounts.get(caller, account_id)
        if account is None:
            raise AccountNotFound
        return account

    async def create(self, caller: Caller, account_id: AccountId, name: str) -> Account:
        """Create an account. Idempotent by id; raises TooManyAccounts."""
        created = await self.accounts.create(
            account_id, owner=caller.user_id, name=tidy_name(name), accounts_max=OWNED_MAX
        )
        if not created:
            raise TooManyAccounts(limit=OWNED_MAX)
        return await self.get(caller, account_id)

    async def rename(self, caller: Caller, account_id: AccountId, name: str) -> Account:
        await self.accounts.rename(account_id, tidy_name(name))
        return await self.get(caller, account_id)

    async def delete(self, account_id: AccountId) -> None:
        """Hide the account at once; it is purged after thirty days."""
        await self.accounts.delete(account_id)

    async def restore(self, caller: Caller, account_id: AccountId) -> Account:
        if not await self.accounts.restore(account_id, caller.user_id):
            raise AccountNotFound
        return await self.get(caller, account_id)


@dataclass(frozen=True, slots=True)
class CurrentUser:
    memberships: ports.Memberships
    accounts: ports.Accounts

    async def account_and_permissions(self, caller: Caller) -> tuple[Account | None, list[Permission]]:
        """Return the caller's account and permissions. Raises AccountNotFound if the chosen account is not
        the caller's.
        """
        membership = await self.memberships.find(caller)
        if membership is None:
            if caller.chosen_account:
                raise AccountNotFound
            return None, []
        account = await self.accounts.get(caller, membership.account_id)
        allowed: list[Permission] = [
            permission
            for permission, roles in ALLOWED.items()
            if (permission in caller.scopes if caller.scopes is not None else membership.role in roles)
        ]
        return account, allowed


def _deletion(account: Account) -> Cursor:
    assert account.deleted_at is not None, "the query returns deleted accounts only"
    return Cursor(account.deleted_at, account.id)
