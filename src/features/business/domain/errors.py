from shared.errors import Invalid, NotFound, PaymentRequired, PreconditionFailed


class BusinessProfileNotFound(NotFound):
    code = "business_profile_not_found"

    def __str__(self) -> str:
        return "There is no such business profile, or it is not yours."


class BusinessProfilesLimit(PaymentRequired):
    code = "business_profiles_limit"

    def __init__(self, limit: int, plan: str) -> None:
        super().__init__(limit, plan)
        self.limit, self.plan = limit, plan

    def __str__(self) -> str:
        return (
            f"Business profiles in the {self.plan} plan: {self.limit} at the most."
            " Delete one, or move to a larger plan."
        )

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.limit, "plan": self.plan}


class ProfileChanged(PreconditionFailed):
    code = "profile_changed"

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version

    def __str__(self) -> str:
        return (
            f"If-Match does not name version {self.version}, which the business profile has now."
            " Read it again and send its ETag."
        )

    @property
    def facts(self) -> dict[str, int | str]:
        return {"version": self.version}


class ProfileInvalid(Invalid):
    code = "business_profile_invalid"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field, self.reason = field, reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"

    @property
    def facts(self) -> dict[str, int | str]:
        return {"field": self.field}
