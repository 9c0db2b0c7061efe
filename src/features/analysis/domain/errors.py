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


class LeadNotFound(NotFound):
    code = "lead_not_found"

    def __str__(self) -> str:
        return "There is no such lead, or it is not yours."


class LeadTaken(Conflict):
    code = "lead_taken"

    def __init__(self, username: str) -> None:
        super().__init__(username)
        self.username = username

    def __str__(self) -> str:
        return (
            f"@{self.username} was analysed again for the same business since: that is another lead now."
            " Delete it first to bring this one back."
        )


class AnalysisNotFound(NotFound):
    """Says the same of a run that is at work, that failed, and that never was."""

    code = "analysis_not_found"

    def __str__(self) -> str:
        return (
            "There is no such analysis, or it is not yours. If you have started it, /v1/runs/ followed by its"
            " id tells how far it is."
        )
