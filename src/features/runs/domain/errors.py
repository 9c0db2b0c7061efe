from shared.errors import Conflict, Invalid, NotFound, RateLimited


class RunNotFound(NotFound):
    code = "run_not_found"
    text = "The run does not exist, or it belongs to another account."


class RunNotRetryable(Conflict):
    code = "run_not_retryable"
    text = "Only a single run that failed or was cancelled can be retried; this one is {status}."
    public = ("status",)


class WaitInvalid(Invalid):
    code = "wait_invalid"
    text = "wait must be 1 to {limit} seconds."
    public = ("limit",)


class TooManyStreams(RateLimited):
    code = "too_many_streams"
    text = "At most {limit} streams can be open at once. Close one, or poll instead."
    public = ("limit",)
    retry_after_s = 15
