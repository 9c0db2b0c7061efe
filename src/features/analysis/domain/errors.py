from shared.errors import Conflict, Forbidden, Invalid, NotFound, RateLimited, Unavailable


class UsernameInvalid(Invalid):
    code = "username_invalid"
    text = (
        "{username} is not an Instagram username: up to 30 letters, digits, underscores and single dots, or"
        " the address of a profile."
    )


class ProfileIsPrivate(Conflict):
    code = "profile_private"
    text = "@{username} is private: there are no posts to look at."


class ProfileNotFound(NotFound):
    code = "profile_not_found"
    text = "There is no @{username} on Instagram."


class ProfileRestricted(Forbidden):
    code = "profile_restricted"
    text = "@{username} shows itself only to people who are signed in, by age or by country."


class ProfilesUnavailable(Unavailable):
    code = "profiles_unavailable"
    text = "@{username} could not be looked at now. Try again in {retry_after_s} s."


class BusinessDeleted(NotFound):
    """The business profile existed when the analysis was requested."""

    code = "business_gone"
    text = "The business profile {business_profile_id} was deleted before the analysis began."


class KeyNeverSpends(Forbidden):
    code = "test_key_never_spends"
    text = "A test key spends no credits. Ask with ?dry_run=true, or use a live key."


class LightLimitReached(RateLimited):
    code = "light_limit_reached"
    text = "Light analyses in this plan: {limit} an hour. There is room in {retry_after_s} s."
    public = ("limit",)


class BulkTooLarge(Invalid):
    code = "bulk_too_large"
    text = "Usernames at once in the {plan} plan: {limit} at the most."
    public = ("limit", "plan")


class NothingToAnalyse(Invalid):
    code = "nothing_to_analyse"
    text = (
        "None of the {rejected_count} rows can be analysed. The first is refused as {first_code}:"
        " {first_reason}"
    )
    public = ("rejected_count", "first_code")


class BulkAnalysisNotFound(NotFound):
    code = "bulk_analysis_not_found"
    text = "There is no such bulk analysis, or it is not yours."


class AnonymousAnalysisNotFound(NotFound):
    code = "anonymous_analysis_not_found"
    text = "There is no analysis for this token, or its 24 hours are over."


class AnalysisNotFound(NotFound):
    """The same problem for a run in progress, a failed run and an unknown id."""

    code = "analysis_not_found"
    text = (
        "There is no such analysis, or it is not yours. If you have started it, /v1/runs/ followed by its id"
        " tells how far it is."
    )
