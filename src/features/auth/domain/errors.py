from shared.errors import Unauthenticated, Unavailable


class TokenInvalid(Unauthenticated):
    code = "token_invalid"

    def __str__(self) -> str:
        return "The access token is not one we accept."


class TokenExpired(Unauthenticated):
    code = "token_expired"

    def __str__(self) -> str:
        return "The access token has expired. Sign in again or refresh it."


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
