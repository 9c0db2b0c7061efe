"""Texts that match a simple pattern or format of JSON Schema."""

import re
from collections.abc import Iterable
from typing import Any

FORMATS = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T12:00:00Z",
    "time": "12:00:00Z",
    "email": "somebody@example.com",
    "uri": "https://example.com/simulated",
    "hostname": "example.com",
    "uuid": "6f1c1f0e-54b1-4f0c-9d2b-0a4d0d5a7c11",
}
SAMPLES = (
    *FORMATS.values(),
    "#a1b2c3",
    "a-b-c",
    "simulated",
    "Simulated",
    "SIM-1",
    "en",
    "en-US",
    "1.0.0",
    "0.5",
)


def text_that_fits(schema: dict[str, Any], texts: Iterable[str]) -> str:
    """Returns the first of the texts, or of some samples, that matches; ``simulated`` when none does."""
    if "pattern" not in schema:
        return FORMATS.get(schema["format"], "simulated")
    pattern = re.compile(schema["pattern"])
    low, high = schema.get("minLength", 0), schema.get("maxLength", 10_000)
    runs = (letter * count for letter in "aA0" for count in range(1, 65))
    candidates = (*texts, *SAMPLES, *runs)
    fitting = (text for text in candidates if low <= len(text) <= high and pattern.search(text))
    return next(fitting, "simulated")
