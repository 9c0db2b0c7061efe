"""Who is calling, as every slice sees it."""

from typing import Literal
from uuid import UUID

import msgspec

from shared.errors import Invalid, NotFound
from shared.ids import AccountId, UserId
from shared.permissions import Permission

PrincipalKind = Literal["user", "api_key"]


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The principal behind a request. ``claims`` is what the database decides by."""

    kind: PrincipalKind = "user"
    id: UUID  # the user's, or the key's
    claims: str  # JSON
    email: str = ""
    is_operator: bool = False
    chosen_account: AccountId | None = None  # None: the caller's only account
    scopes: frozenset[Permission] | None = None  # of a key; None: whatever the role allows
    project: str | None = None  # a key may be bound to one
    is_test: bool = False  # a key that never spends

    @property
    def user_id(self) -> UserId:
        assert self.kind == "user", "the route is closed to keys"
        return UserId(self.id)

    @property
    def actor(self) -> str:
        """For the record of who did a thing."""
        return f"{self.kind}:{self.id}"


class AuthContext(msgspec.Struct, frozen=True, kw_only=True):
    """A caller at the door: for which account, as far as it is known, on which plan, and by what name
    they are counted. Up to a minute old: what they may do is asked anew.
    """

    caller: Caller
    account_id: AccountId | None
    plan: str
    counted_as: str


class AccountNotFound(NotFound):
    code = "account_not_found"

    def __str__(self) -> str:
        return "There is no such account, or it is not yours."


class AccountNotChosen(Invalid):
    code = "account_not_chosen"

    def __str__(self) -> str:
        return "You belong to several accounts, or to none. Choose one with the Oslira-Account header."


def no_account(caller: Caller) -> AccountNotFound | AccountNotChosen:
    """What to raise when the caller's account cannot be seen: a foreign one, or none named."""
    return AccountNotFound() if caller.chosen_account else AccountNotChosen()
