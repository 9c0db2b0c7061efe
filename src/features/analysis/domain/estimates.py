"""How long an analysis takes once it is its turn, in the median."""

from features.analysis.domain.profile import AnalysisType

COLD_S: dict[AnalysisType, int] = {"light": 9, "deep": 20, "xray": 17}
CACHED_S: dict[AnalysisType, int] = {"light": 3, "deep": 12, "xray": 10}


def eta_s(analysis_type: AnalysisType, *, is_cached: bool) -> int:
    return (CACHED_S if is_cached else COLD_S)[analysis_type]
