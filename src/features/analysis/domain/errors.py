from shared.errors import Conflict, Forbidden, Invalid, NotFound, RateLimited, Unavailable


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


class BusinessDeleted(NotFound):
    """The business profile existed when the analysis was requested."""

    code = "business_gone"

    def __init__(self, business_profile_id: str) -> None:
        super().__init__(business_profile_id)
        self.business_profile_id = business_profile_id

    def __str__(self) -> str:
        return f"The business profile {self.business_profile_id} was deleted before the analysis began."


class KeyNeverSpends(Forbidden):
    code = "test_key_never_spends"

    def __str__(self) -> str:
        return "A test key spends no credits. Ask with ?dry_run=true, or use a live key."


class LightLimitReached(RateLimited):
    code = "light_limit_reached"

    def __init__(self, limit: int, retry_after_s: int) -> None:
        super().__init__(limit, retry_after_s)
        self.limit, self.retry_after_s = limit, retry_after_s

    def __str__(self) -> str:
        return f"Light analyses in this plan: {self.limit} an hour. There is room in {self.retry_after_s} s."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.limit}


class BulkTooLarge(Invalid):
    code = "bulk_too_large"

    def __init__(self, limit: int, plan: str) -> None:
        super().__init__(limit, plan)
        self.limit, self.plan = limit, plan

    def __str__(self) -> str:
        return f"Usernames at once in the {self.plan} plan: {self.limit} at the most."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.limit, "plan": self.plan}


class NothingToAnalyse(Invalid):
    code = "nothing_to_analyse"

    def __init__(self, rejected_count: int, first_code: str, first_reason: str) -> None:
        super().__init__(rejected_count, first_code, first_reason)
        self.rejected_count, self.first_code, self.first_reason = rejected_count, first_code, first_reason

    def __str__(self) -> str:
        return (
            f"None of the {self.rejected_count} rows can be analysed."
            f" The first is refused as {self.first_code}: {self.first_reason}"
        )

    @property
    def facts(self) -> dict[str, int | str]:
        return {"rejected_count": self.rejected_count, "first_code": self.first_code}


class BulkAnalysisNotFound(NotFound):
    code = "bulk_analysis_not_found"

    def __str__(self) -> str:
        return "There is no such bulk analysis, or it is not yours."


class AnonymousAnalysisNotFound(NotFound):
    code = "anonymous_analysis_not_found"

    def __str__(self) -> str:
        return "There is no analysis for this token, or its 24 hours are over."


class AnalysisNotFound(NotFound):
    """The same problem for a run in progress, a failed run and an unknown id."""

    code = "analysis_not_found"

    def __str__(self) -> str:
        return (
            "There is no such analysis, or it is not yours. If you have started it, /v1/runs/ followed by its"
            " id tells how far it is."
        )
