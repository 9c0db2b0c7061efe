"""Estimated duration of an analysis after it leaves the queue."""

import math
from collections.abc import Sequence

from shared.ids import AnalysisType

LOOK = "scrape"  # the step that a cached profile skips
# Used until completed analyses provide durations.
COLD_S: dict[AnalysisType, int] = {"light": 9, "deep": 20, "xray": 17}
CACHED_S: dict[AnalysisType, int] = {"light": 3, "deep": 12, "xray": 10}


def eta_s(analysis_type: AnalysisType, steps_s: Sequence[tuple[str, float]], *, is_cached: bool) -> int:
    """``steps_s`` holds the usual seconds of each step; empty when no durations are known."""
    if not steps_s:
        return (CACHED_S if is_cached else COLD_S)[analysis_type]
    seconds = sum(seconds for step, seconds in steps_s if not (is_cached and step == LOOK))
    return max(1, math.ceil(seconds))
