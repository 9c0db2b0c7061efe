"""Who is calling, as every slice sees it."""

from collections.abc import Awaitable, Callable

import msgspec

from shared.ids import AccountId, UserId


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UserId
    claims: str  # the verified token's claims as JSON: what the database decides by
    is_operator: bool
    chosen_account: AccountId | None = None  # None: the caller's only account


Identify = Callable[[str], Awaitable[Caller]]
"""From the Authorization header's value to the caller; raises Unauthenticated."""
