from shared.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PaymentRequired,
    Unauthenticated,
    Unavailable,
)
from shared.permissions import Permission


class TokenInvalid(Unauthenticated):
    code = "token_invalid"

    def __str__(self) -> str:
        return "The access token is not one we accept."


class TokenExpired(Unauthenticated):
    code = "token_expired"

    def __str__(self) -> str:
        return "The access token has expired. Sign in again or refresh it."


class ApiKeyInvalid(Unauthenticated):
    """The key is mistyped, unknown, expired or revoked; the response does not reveal which."""

    code = "api_key_invalid"

    def __str__(self) -> str:
        return "The API key is not valid: mistyped, expired or revoked. Make a new one under /v1/api-keys."


class ApiKeyMistyped(ApiKeyInvalid):
    """The checksum is wrong. Detecting this needs no query, so the request is not counted."""

    is_counted = False


class AccountHeaderInvalid(Invalid):
    code = "account_header_invalid"

    def __str__(self) -> str:
        return "The Oslira-Account header has to be the id of an account."


class PermissionMissing(Forbidden):
    code = "permission_missing"

    def __init__(self, permission: Permission, role: str) -> None:
        super().__init__(permission, role)
        self.permission, self.role = permission, role

    def __str__(self) -> str:
        return f"This needs {self.permission}, which the role {self.role} does not have. Ask an owner."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"permission": self.permission, "role": self.role}


class ScopeMissing(Forbidden):
    code = "scope_missing"

    def __init__(self, permission: Permission) -> None:
        super().__init__(permission)
        self.permission: Permission = permission

    def __str__(self) -> str:
        return f"This needs an API key with the scope {self.permission}."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"permission": self.permission}


class UsersOnly(Forbidden):
    code = "users_only"

    def __str__(self) -> str:
        return "API keys cannot do this. Send a user's access token."


class OperatorsOnly(Forbidden):
    code = "operators_only"

    def __str__(self) -> str:
        return "This is for operators of the service."


class OwnersOnly(Forbidden):
    code = "owners_only"

    def __str__(self) -> str:
        return "Only an owner makes, changes or removes owners."


class MemberNotFound(NotFound):
    code = "member_not_found"

    def __str__(self) -> str:
        return "Nobody with this id is a member of the account."


class LastOwner(Conflict):
    code = "last_owner"

    def __str__(self) -> str:
        return "An account keeps at least one owner. Make somebody else an owner first, or delete it."


class TooManyAccounts(PaymentRequired):
    code = "accounts_limit"

    def __init__(self, accounts_max: int) -> None:
        super().__init__(accounts_max)
        self.accounts_max = accounts_max

    def __str__(self) -> str:
        return f"A user owns {self.accounts_max} accounts at the most. Delete one, or ask us for more."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.accounts_max}


class AlreadyMember(Conflict):
    code = "already_member"

    def __str__(self) -> str:
        return "Somebody with this address is a member already."


class InvitationNotFound(NotFound):
    code = "invitation_not_found"

    def __str__(self) -> str:
        return "There is no such invitation, or it has been used, withdrawn or has expired."


class InvitationForAnotherUser(Forbidden):
    code = "invitation_for_somebody_else"

    def __str__(self) -> str:
        return "This invitation was sent to another e-mail address. Sign in with that one."


class TooManyInvitations(PaymentRequired):
    code = "invitations_limit"

    def __init__(self, invitations_max: int) -> None:
        super().__init__(invitations_max)
        self.invitations_max = invitations_max

    def __str__(self) -> str:
        return f"{self.invitations_max} invitations may wait for an answer. Withdraw some first."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.invitations_max}


class ApiKeyNotFound(NotFound):
    code = "api_key_not_found"

    def __str__(self) -> str:
        return "There is no such API key."


class ApiKeyEnded(Conflict):
    code = "api_key_is_over"

    def __str__(self) -> str:
        return "The API key has been revoked or has expired. Make a new one."


class TooManyApiKeys(PaymentRequired):
    code = "api_keys_limit"

    def __init__(self, keys_max: int) -> None:
        super().__init__(keys_max)
        self.keys_max = keys_max

    def __str__(self) -> str:
        return f"An account has {self.keys_max} valid keys at the most. Revoke one first."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.keys_max}


class NameInvalid(Invalid):
    code = "name_invalid"

    def __str__(self) -> str:
        return (
            "A name is 1 to 200 characters, begins with one that can be seen, and has no control characters."
        )


class EmailInvalid(Invalid):
    code = "email_invalid"

    def __str__(self) -> str:
        return "This is not an e-mail address."


class ExpiryInvalid(Invalid):
    code = "expiry_invalid"

    def __str__(self) -> str:
        return "An expiry lies in the future, five years from now at the most."


class TokenAnonymous(Unauthenticated):
    code = "token_anonymous"

    def __str__(self) -> str:
        return "Anonymous sign-ins have no account here. Sign in with an e-mail address."


class IdentityUnavailable(Unavailable):
    code = "identity_unavailable"

    def __str__(self) -> str:
        return "Access tokens cannot be checked at the moment. Try again in a few seconds."


class InvitationNotSent(Unavailable):
    code = "invitation_not_sent"

    def __str__(self) -> str:
        return "The invitation could not be sent by e-mail. Try again in a few minutes."
