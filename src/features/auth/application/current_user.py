from dataclasses import dataclass

from features.auth.application import ports
from features.auth.domain.memberships import Account
from features.auth.domain.roles import ALLOWED
from shared.caller import AccountNotFound, Caller
from shared.permissions import Permission


@dataclass(frozen=True, slots=True)
class CurrentUser:
    standings: ports.Memberships
    accounts: ports.Accounts

    async def standing(self, caller: Caller) -> tuple[Account | None, list[Permission]]:
        """Return the caller's account and permissions. Raises AccountNotFound if the chosen account is not
        the caller's.
        """
        standing = await self.standings.of(caller)
        if standing is None:
            if caller.chosen_account:
                raise AccountNotFound
            return None, []
        account = await self.accounts.get(caller, standing.account_id)
        allowed: list[Permission] = [
            permission
            for permission, roles in ALLOWED.items()
            if (permission in caller.scopes if caller.scopes is not None else standing.role in roles)
        ]
        return account, allowed
