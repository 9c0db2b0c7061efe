"""Provider faults by the names that tests use."""

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


# The first fault of each group represents it in the normal tests; these others run once only in the battery.
ALIKE = (*LIMITED[1:], *FAILING[1:], *UNREADABLE[1:])


def is_long(fault, often):
    """An endless drip lasts until the deadline, as an endless silence does, so it runs only in the
    battery.
    """
    return (fault, often) == ("drip", "for ever") or (often == "once" and fault in ALIKE)


def each_of(faults):
    """Parametrizes a test with each fault, once and permanently."""
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
