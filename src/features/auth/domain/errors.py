from shared.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PaymentRequired,
    Unauthenticated,
    Unavailable,
)


class TokenInvalid(Unauthenticated):
    code = "token_invalid"
    text = "The access token is not valid."


class TokenExpired(Unauthenticated):
    code = "token_expired"
    text = "The access token has expired. Sign in again or refresh it."


class ApiKeyInvalid(Unauthenticated):
    """The key is mistyped, unknown, expired or revoked; the response does not reveal which."""

    code = "api_key_invalid"
    text = "The API key is not valid: mistyped, expired or revoked. Create a new one with POST /v1/api-keys."


class ApiKeyMistyped(ApiKeyInvalid):
    """The checksum is wrong. Detecting this needs no query, so the request is not counted."""

    is_counted = False


class AccountHeaderInvalid(Invalid):
    code = "account_header_invalid"
    text = "The Oslira-Account header must be the id of an account."


class PermissionMissing(Forbidden):
    code = "permission_missing"
    text = "This needs {permission}, which the role {role} does not have. Ask an owner."
    public = ("permission", "role")


class ScopeMissing(Forbidden):
    code = "scope_missing"
    text = "This needs an API key with the scope {permission}."
    public = ("permission",)


class UsersOnly(Forbidden):
    code = "users_only"
    text = "API keys cannot do this. Send a user's access token."


class OperatorsOnly(Forbidden):
    code = "operators_only"
    text = "This is for operators of the service."


class OwnersOnly(Forbidden):
    code = "owners_only"
    text = "Only an owner can add, change or remove owners."


class MemberNotFound(NotFound):
    code = "member_not_found"
    text = "The account has no member with this id."


class LastOwner(Conflict):
    code = "last_owner"
    text = "An account needs at least one owner. Make another member an owner first, or delete the account."


class TooManyAccounts(PaymentRequired):
    code = "accounts_limit"
    text = "A user can own at most {limit} accounts. Delete one, or ask us for more."
    public = ("limit",)


class AlreadyMember(Conflict):
    code = "already_member"
    text = "A member of the account has this address already."


class InvitationNotFound(NotFound):
    code = "invitation_not_found"
    text = "There is no such invitation, or it has been used, withdrawn or has expired."


class InvitationForAnotherUser(Forbidden):
    code = "invitation_for_another_user"
    text = "This invitation was sent to another e-mail address. Sign in with that address."


class TooManyInvitations(PaymentRequired):
    code = "invitations_limit"
    text = "An account can have at most {limit} open invitations. Withdraw some first."
    public = ("limit",)


class ApiKeyNotFound(NotFound):
    code = "api_key_not_found"
    text = "There is no such API key."


class ApiKeyEnded(Conflict):
    code = "api_key_ended"
    text = "The API key was revoked or has expired. Create a new one."


class TooManyApiKeys(PaymentRequired):
    code = "api_keys_limit"
    text = "An account can have at most {limit} valid keys. Revoke one first."
    public = ("limit",)


class NameInvalid(Invalid):
    code = "name_invalid"
    text = "A name has 1 to 200 characters, begins with a visible one and contains no control characters."


class EmailInvalid(Invalid):
    code = "email_invalid"
    text = "This is not an e-mail address."


class ExpiryInvalid(Invalid):
    code = "expiry_invalid"
    text = "An expiry must be in the future, at most five years from now."


class TokenAnonymous(Unauthenticated):
    code = "token_anonymous"
    text = "Anonymous sign-ins have no account here. Sign in with an e-mail address."


class IdentityUnavailable(Unavailable):
    code = "identity_unavailable"
    text = "Access tokens cannot be verified at the moment. Try again in a few seconds."


class InvitationNotSent(Unavailable):
    code = "invitation_not_sent"
    text = "The invitation could not be sent by e-mail. Try again in a few minutes."
