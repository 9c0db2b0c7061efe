from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from msgspec.structs import replace

from features.auth.application.ports import Memberships
from features.auth.domain.errors import OperatorsOnly, PermissionMissing, ScopeMissing, UsersOnly
from features.auth.domain.memberships import Membership
from features.auth.domain.roles import ALLOWED, FOR_EVERY_ROLE, is_permission
from shared.caller import AccountNotFound, Caller, no_account
from shared.clock import Clock
from shared.ids import AccountId
from shared.permissions import Permission

# Route policies other than permissions. The routes are checked against them at start-up.
MARKS = ("signed_in", "users_only", "operators_only")
REMEMBERED_FOR = timedelta(seconds=60)
REMEMBERED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Authorization:
    """Authorization of a caller. The middleware calls it for every request to a route that is not public."""

    standings: Memberships
    now: Clock
    _known: dict[tuple[UUID, AccountId | None], tuple[Membership | None, datetime]] = field(
        default_factory=dict, init=False
    )

    async def admit(self, caller: Caller, access: str, account_id: AccountId | None) -> Caller:
        """Authorize the caller and return it with its account. Raises Forbidden or NotFound.

        ``access`` is the route's policy and ``account_id`` the account in its path. The role is read on every
        request, so a role change takes effect at once.
        """
        if is_permission(access):
            return await self._admit_with(access, caller, account_id)
        if access == "users_only" and caller.kind != "user":
            raise UsersOnly
        if access == "operators_only" and not caller.is_operator:
            raise OperatorsOnly
        assert access in MARKS, "an unknown mark opens nothing"
        return caller

    async def _admit_with(
        self, permission: Permission, caller: Caller, account_id: AccountId | None
    ) -> Caller:
        if caller.scopes is not None:
            return _admit_key(caller, caller.scopes, permission, account_id)
        if account_id is not None:
            caller = replace(caller, chosen_account=account_id)
        if permission in FOR_EVERY_ROLE:
            return caller
        return await self._admit_member(caller, permission)

    async def _admit_member(self, caller: Caller, permission: Permission) -> Caller:
        standing = await self.standings.of(caller)
        if standing is None or standing.role is None:
            raise no_account(caller)
        if standing.role not in ALLOWED[permission]:
            raise PermissionMissing(permission, standing.role)
        return replace(caller, chosen_account=standing.account_id)

    async def remembered_standing(self, caller: Caller) -> Membership | None:
        """Return the membership from a cache of up to a minute; this is exact enough for rate limits."""
        place = (caller.id, caller.chosen_account)
        known = self._known.get(place)
        if known is not None and self.now() < known[1]:
            return known[0]
        standing = await self.standings.of(caller)
        if len(self._known) >= REMEMBERED_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[place] = (standing, self.now() + REMEMBERED_FOR)
        return standing


def _admit_key(
    caller: Caller, scopes: frozenset[Permission], permission: Permission, account_id: AccountId | None
) -> Caller:
    if account_id is not None and account_id != caller.chosen_account:
        raise AccountNotFound
    if permission not in scopes:
        raise ScopeMissing(permission)
    return caller
