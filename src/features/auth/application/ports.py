from typing import Any, Protocol

from shared.ids import AccountId, UserId


class TokenVerifier(Protocol):
    async def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that is genuine, current and for us; Unauthenticated otherwise."""
        ...


class SignUps(Protocol):
    async def first_sight(self, user_id: UserId, *, account_name: str, bonus_credits: int) -> AccountId:
        """Give a new user an account and the bonus, once. Repeatable; returns the same account."""
        ...
