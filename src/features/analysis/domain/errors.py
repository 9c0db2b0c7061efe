from shared.errors import Conflict, Forbidden, Invalid, NotFound, RateLimited, Unavailable


class UsernameInvalid(Invalid):
    code = "username_invalid"
    text = (
        "{username} is not an Instagram username: up to 30 letters, digits, underscores and single dots, or"
        " the URL of a profile."
    )


class ProfileIsPrivate(Conflict):
    code = "profile_private"
    text = "@{username} is private, so its posts cannot be read."


class ProfileNotFound(NotFound):
    code = "profile_not_found"
    text = "Instagram has no profile @{username}."


class ProfileRestricted(Forbidden):
    code = "profile_restricted"
    text = "@{username} is visible only to signed-in users of some ages or countries."


class ProfilesUnavailable(Unavailable):
    code = "profiles_unavailable"
    text = "@{username} could not be read. Try again in {retry_after_s} s."


class BusinessDeleted(NotFound):
    """The business profile existed when the analysis was requested."""

    code = "business_profile_deleted"
    text = "The business profile {business_profile_id} was deleted before the analysis began."


class KeyCannotSpend(Forbidden):
    code = "test_key_never_spends"
    text = "A test key cannot spend credits. Use ?dry_run=true or a live key."


class LightLimitReached(RateLimited):
    code = "light_limit_reached"
    text = "This plan allows {limit} light analyses per hour. Try again in {retry_after_s} s."
    public = ("limit",)


class BulkTooLarge(Invalid):
    code = "bulk_too_large"
    text = "The {plan} plan allows at most {limit} usernames per bulk analysis."
    public = ("limit", "plan")


class NothingToAnalyse(Invalid):
    code = "nothing_to_analyse"
    text = (
        "None of the {rejected_count} rows can be analysed. The first is rejected with {first_code}:"
        " {first_reason}"
    )
    public = ("rejected_count", "first_code")


class BulkAnalysisNotFound(NotFound):
    code = "bulk_analysis_not_found"
    text = "The bulk analysis does not exist, or it belongs to another account."


class AnonymousAnalysisNotFound(NotFound):
    code = "anonymous_analysis_not_found"
    text = "There is no analysis for this token, or it is older than 24 hours."


class AnalysisNotFound(NotFound):
    """The same problem for a run in progress, a failed run and an unknown id."""

    code = "analysis_not_found"
    text = (
        "The analysis does not exist, or it belongs to another account. The progress of a run that has not"
        " completed is at /v1/runs/ followed by its id."
    )
