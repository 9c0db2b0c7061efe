"""What can go wrong at a provider, by the names that tests go by."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

LIMITED_CODES = {
    "openai": "rate_limit_exceeded",
    "anthropic": "rate_limit_error",
    "apify": "rate-limit-exceeded",
    "scraperapi": None,
}
RETRY_AFTER_S = {"429 for two seconds": 2, "429 until a date": 5, "429 for a year": 31_536_000}
LIMITED = ("429", *RETRY_AFTER_S)
FAILING = ("500", "503", "529")
HANGING = ("timeout", "drip")
BROKEN = ("reset", "reset_midway")
UNREADABLE = ("truncated", "empty", "html", "error_in_200")
MISSHAPEN = ("wrong_schema", "duplicate")
FAULTS = (*HANGING, *BROKEN, *LIMITED, *FAILING, *UNREADABLE, *MISSHAPEN)
TIMES = {"once": 1, "for ever": None}


# Each kind of these is met once by its first; the rest of them once are for the battery.
ALIKE = (*LIMITED[1:], *FAILING[1:], *UNREADABLE[1:])


def is_long(fault, often):
    """A drip without an end takes as long as a deadline, as a silence does."""
    return (fault, often) == ("drip", "for ever") or (often == "once" and fault in ALIKE)


def each_of(faults):
    """Once and for ever."""
    return pytest.mark.parametrize(
        ("fault", "often"),
        [
            pytest.param(
                *(fault, often),
                id=f"{fault}, {often}",
                marks=pytest.mark.battery if is_long(fault, often) else (),
            )
            for fault in faults
            for often in TIMES
        ],
    )


async def set_fault(simulators, provider, route, name, often="for ever", method=None):
    options = {"kind": name} if not name[0].isdigit() else _status(provider, name)
    await simulators.fault(route, times=TIMES[often], method=method, **options)


def _status(provider, name):
    if name not in LIMITED:
        return {"kind": "status", "status": int(name)}
    retry_after_s = RETRY_AFTER_S.get(name)
    text = str(retry_after_s)
    if name == "429 until a date":
        text = format_datetime(datetime.now(UTC) + timedelta(seconds=retry_after_s), usegmt=True)
    headers = {} if retry_after_s is None else {"retry-after": text}
    return {"kind": "status", "status": 429, "code": LIMITED_CODES[provider], "headers": headers}
