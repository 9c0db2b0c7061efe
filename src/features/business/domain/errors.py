from shared.errors import Invalid, NotFound, PaymentRequired, PreconditionFailed


class BusinessProfileNotFound(NotFound):
    code = "business_profile_not_found"
    text = "The business profile does not exist, or it belongs to another account."


class BusinessProfilesLimit(PaymentRequired):
    code = "business_profiles_limit"
    text = "The {plan} plan allows at most {limit} business profiles. Delete one, or move to a larger plan."
    public = ("limit", "plan")


class ProfileChanged(PreconditionFailed):
    code = "profile_changed"
    text = (
        "If-Match does not name version {version}, which the business profile has now. Read it again and send"
        " its ETag."
    )
    public = ("version",)


class ProfileInvalid(Invalid):
    code = "business_profile_invalid"
    text = "{field}: {reason}"
    public = ("field",)
