import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from msgspec.structs import replace

from features.auth.application.authorization import Authorization
from features.auth.application.credentials import Credentials
from features.auth.domain.errors import AccountHeaderInvalid
from shared.caller import AccountNotFound, AuthContext, Caller
from shared.ids import UUID_TEXT, AccountId

UNKNOWN_PLAN = "free"
REMEMBERED_FOR_S = 1.0
REMEMBERED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Authentication:
    """Authentication for the middleware: the caller and its account.

    A context is cached for one second, because most callers send several requests in a row.
    """

    callers: Credentials
    access: Authorization
    now_s: Callable[[], float] = time.monotonic
    _known: dict[tuple[bytes, bytes | None], tuple[AuthContext, float]] = field(
        default_factory=dict, init=False
    )

    async def visit(self, authorization: bytes, account: bytes | None) -> AuthContext:
        """Identify the caller from the header values. Raises Unauthenticated, AccountHeaderInvalid or
        AccountNotFound.
        """
        known = self._known.get((authorization, account))
        if known is not None and self.now_s() < known[1]:
            return known[0]
        caller = await self.callers.identify(authorization.decode("latin-1"))
        if account is not None:
            caller = _for_account(caller, account)
        standing = await self.access.remembered_standing(caller)
        visit = AuthContext(
            caller=caller,
            account_id=standing.account_id if standing else None,
            plan=standing.plan if standing else UNKNOWN_PLAN,
            counted_as=caller.actor,
        )
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[authorization, account] = (visit, self.now_s() + REMEMBERED_FOR_S)
        return visit

    async def is_operator(self, authorization: bytes) -> bool:
        return await self.callers.is_operator(authorization.decode("latin-1"))

    async def admit(self, caller: Caller, access: str, account_id: AccountId | None) -> Caller:
        return await self.access.admit(caller, access, account_id)


def _for_account(caller: Caller, header: bytes) -> Caller:
    text = header.decode("latin-1")
    if not UUID_TEXT.fullmatch(text):
        raise AccountHeaderInvalid
    account_id = AccountId(UUID(text))
    if caller.kind == "user":
        return replace(caller, chosen_account=account_id)
    if account_id != caller.chosen_account:  # a key belongs to exactly one account
        raise AccountNotFound
    return caller
