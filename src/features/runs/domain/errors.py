from shared.errors import Conflict, Invalid, NotFound, RateLimited


class RunNotFound(NotFound):
    code = "run_not_found"

    def __str__(self) -> str:
        return "There is no such run, or it is not yours."


class RunNotRetryable(Conflict):
    code = "run_not_retryable"

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"Only a single run that failed or was cancelled is tried again; this one is {self.status}."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"status": self.status}


class WaitInvalid(Invalid):
    code = "wait_invalid"

    def __init__(self, seconds_max: int) -> None:
        super().__init__(seconds_max)
        self.seconds_max = seconds_max

    def __str__(self) -> str:
        return f"wait is 1 to {self.seconds_max} seconds."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.seconds_max}


class TooManyStreams(RateLimited):
    code = "too_many_streams"
    retry_after_s = 15

    def __init__(self, streams_max: int) -> None:
        super().__init__(streams_max)
        self.streams_max = streams_max

    def __str__(self) -> str:
        return f"{self.streams_max} streams may be open at once. Close one, or poll instead."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.streams_max}
