from shared.errors import Unauthenticated


class TokenInvalid(Unauthenticated):
    code = "token_invalid"

    def __str__(self) -> str:
        return "The access token is not one we accept."


class TokenExpired(Unauthenticated):
    code = "token_expired"

    def __str__(self) -> str:
        return "The access token has expired. Sign in again or refresh it."
