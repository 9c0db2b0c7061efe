from shared.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable


class UsernameInvalid(Invalid):
    code = "username_invalid"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return (
            f"{self.text} is not an Instagram username: up to 30 letters, digits, underscores and single"
            " dots, or the address of a profile."
        )


class ProfileIsPrivate(Conflict):
    code = "profile_private"

    def __init__(self, username: str) -> None:
        super().__init__(username)
        self.username = username

    def __str__(self) -> str:
        return f"@{self.username} is private: there are no posts to look at."


class ProfileNotFound(NotFound):
    code = "profile_not_found"

    def __init__(self, username: str) -> None:
        super().__init__(username)
        self.username = username

    def __str__(self) -> str:
        return f"There is no @{self.username} on Instagram."


class ProfileRestricted(Forbidden):
    code = "profile_restricted"

    def __init__(self, username: str) -> None:
        super().__init__(username)
        self.username = username

    def __str__(self) -> str:
        return f"@{self.username} shows itself only to people who are signed in, by age or by country."


class ProfilesUnavailable(Unavailable):
    code = "profiles_unavailable"

    def __init__(self, username: str, retry_after_s: int) -> None:
        super().__init__(username, retry_after_s)
        self.username, self.retry_after_s = username, retry_after_s

    def __str__(self) -> str:
        return f"@{self.username} could not be looked at now. Try again in {self.retry_after_s} s."


class BusinessGone(NotFound):
    """It was there when the analysis was asked for."""

    code = "business_gone"

    def __init__(self, business_profile_id: str) -> None:
        super().__init__(business_profile_id)
        self.business_profile_id = business_profile_id

    def __str__(self) -> str:
        return f"The business profile {self.business_profile_id} was deleted before the analysis began."
