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
    text = "The access token is not one we accept."


class TokenExpired(Unauthenticated):
    code = "token_expired"
    text = "The access token has expired. Sign in again or refresh it."


class ApiKeyInvalid(Unauthenticated):
    """The key is mistyped, unknown, expired or revoked; the response does not reveal which."""

    code = "api_key_invalid"
    text = "The API key is not valid: mistyped, expired or revoked. Make a new one under /v1/api-keys."


class ApiKeyMistyped(ApiKeyInvalid):
    """The checksum is wrong. Detecting this needs no query, so the request is not counted."""

    is_counted = False


class AccountHeaderInvalid(Invalid):
    code = "account_header_invalid"
    text = "The Oslira-Account header has to be the id of an account."


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
    text = "Only an owner makes, changes or removes owners."


class MemberNotFound(NotFound):
    code = "member_not_found"
    text = "Nobody with this id is a member of the account."


class LastOwner(Conflict):
    code = "last_owner"
    text = "An account keeps at least one owner. Make somebody else an owner first, or delete it."


class TooManyAccounts(PaymentRequired):
    code = "accounts_limit"
    text = "A user owns {limit} accounts at the most. Delete one, or ask us for more."
    public = ("limit",)


class AlreadyMember(Conflict):
    code = "already_member"
    text = "Somebody with this address is a member already."


class InvitationNotFound(NotFound):
    code = "invitation_not_found"
    text = "There is no such invitation, or it has been used, withdrawn or has expired."


class InvitationForAnotherUser(Forbidden):
    code = "invitation_for_somebody_else"
    text = "This invitation was sent to another e-mail address. Sign in with that one."


class TooManyInvitations(PaymentRequired):
    code = "invitations_limit"
    text = "{limit} invitations may wait for an answer. Withdraw some first."
    public = ("limit",)


class ApiKeyNotFound(NotFound):
    code = "api_key_not_found"
    text = "There is no such API key."


class ApiKeyEnded(Conflict):
    code = "api_key_is_over"
    text = "The API key has been revoked or has expired. Make a new one."


class TooManyApiKeys(PaymentRequired):
    code = "api_keys_limit"
    text = "An account has {limit} valid keys at the most. Revoke one first."
    public = ("limit",)


class NameInvalid(Invalid):
    code = "name_invalid"
    text = "A name is 1 to 200 characters, begins with one that can be seen, and has no control characters."


class EmailInvalid(Invalid):
    code = "email_invalid"
    text = "This is not an e-mail address."


class ExpiryInvalid(Invalid):
    code = "expiry_invalid"
    text = "An expiry lies in the future, five years from now at the most."


class TokenAnonymous(Unauthenticated):
    code = "token_anonymous"
    text = "Anonymous sign-ins have no account here. Sign in with an e-mail address."


class IdentityUnavailable(Unavailable):
    code = "identity_unavailable"
    text = "Access tokens cannot be checked at the moment. Try again in a few seconds."


class InvitationNotSent(Unavailable):
    code = "invitation_not_sent"
    text = "The invitation could not be sent by e-mail. Try again in a few minutes."
