from typing import Any, Protocol

from shared.ids import AccountId, UserId


class TokenVerifier(Protocol):
    @property
    def generation(self) -> int:
        """Changes when a signing key is withdrawn: what was verified before has to be verified again."""
        ...

    async def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that is genuine, current and for us; Unauthenticated otherwise.
        Raises IdentityUnavailable while that cannot be told.
        """
        ...


class SignUps(Protocol):
    async def first_sight(self, user_id: UserId, *, account_name: str, bonus_credits: int) -> AccountId:
        """Give a new user an account and the bonus, once. Repeatable; returns the same account."""
        ...


class InvitationMail(Protocol):
    async def send(self, email: str, *, link: str, account_name: str, inviter: str) -> None:
        """Have the identity service invite the address; existing users get a sign-in link.
        Raises InvitationNotSent (Unavailable).
        """
        ...
