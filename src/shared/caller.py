"""The authenticated caller of a request, shared by all slices."""

from typing import Literal
from uuid import UUID

import msgspec

from shared.errors import Invalid, NotFound
from shared.ids import AccountId, UserId
from shared.permissions import Permission

PrincipalKind = Literal["user", "api_key"]


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The principal that sent a request. The database authorizes by ``claims``."""

    kind: PrincipalKind = "user"
    id: UUID  # user id or API key id
    claims: str  # JSON
    email: str = ""
    is_operator: bool = False
    chosen_account: AccountId | None = None  # None: the caller's only account
    scopes: frozenset[Permission] | None = None  # of an API key; None: all permissions of the role
    project: str | None = None  # of an API key that is bound to one project
    is_test: bool = False  # an API key that spends no credits

    @property
    def user_id(self) -> UserId:
        assert self.kind == "user", "the route is closed to keys"
        return UserId(self.id)

    @property
    def actor(self) -> str:
        """The name of the principal in audit and history records."""
        return f"{self.kind}:{self.id}"


class AuthContext(msgspec.Struct, frozen=True, kw_only=True):
    """The authenticated caller with its account (None when unknown), its plan and the key of its rate limit.

    It may be cached for up to a minute, so permissions are checked separately on each request.
    """

    caller: Caller
    account_id: AccountId | None
    plan: str
    rate_limit_key: str


class AccountNotFound(NotFound):
    code = "account_not_found"
    text = "There is no such account, or it is not yours."


class AccountNotChosen(Invalid):
    code = "account_not_chosen"
    text = "You belong to several accounts, or to none. Choose one with the Oslira-Account header."


def no_account(caller: Caller) -> AccountNotFound | AccountNotChosen:
    """Return the error for an account that the caller cannot see: a foreign account, or none chosen."""
    return AccountNotFound() if caller.chosen_account else AccountNotChosen()
