"""Kinds of runs. The slice that executes a kind declares it."""

import msgspec

EXPECTED_S = 30.0


class ResultLink(msgspec.Struct, frozen=True, kw_only=True):
    """URL of a kind's result. ``is_early``: partial results are available before the run has ended."""

    template: str
    is_early: bool = False


class RunKind(msgspec.Struct, frozen=True, kw_only=True):
    """``expected_s`` is the estimated duration until runs of the kind have completed."""

    name: str
    result_link: ResultLink | None = None
    expected_s: float = EXPECTED_S
