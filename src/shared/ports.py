"""The collaborators nearly every use case needs."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime: ...


class Transaction(Protocol):
    """Everything inside commits together or not at all. Nested calls join."""

    def __call__(self) -> AbstractAsyncContextManager[None]: ...
