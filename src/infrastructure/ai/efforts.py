"""How hard a model is asked to think, in words that it knows."""

from infrastructure.ai.provider import ModelRequest

SCALE = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def effort_of(request: ModelRequest) -> str | None:
    """The asked effort, or the nearest that the model takes; of two equally near ones the lower, which
    costs less. None where nothing is asked or the model takes none.
    """
    allowed = [effort for effort in SCALE if effort in request.capabilities.efforts]
    if request.effort is None or not allowed:
        return None
    asked = SCALE.index(request.effort)
    return min(allowed, key=lambda effort: abs(SCALE.index(effort) - asked))
