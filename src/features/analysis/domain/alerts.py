"""Alerts for analyses that exceed their cost or duration limits."""

from typing import Literal

import msgspec

Level = Literal["warning", "critical"]
AlertKind = Literal["cost", "duration", "unpriced"]


class AlertThresholds(msgspec.Struct, frozen=True, kw_only=True):
    cost_warning_nanodollars: int
    cost_critical_nanodollars: int
    duration_max_ms: dict[str, int]  # by type of analysis; other types have no limit


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    kind: AlertKind
    level: Level
    value: float
    limit: float


LIMITS = AlertThresholds(
    cost_warning_nanodollars=50_000_000,
    cost_critical_nanodollars=100_000_000,
    duration_max_ms={"light": 60_000, "deep": 90_000, "xray": 120_000},
)


def alerts(
    analysis_type: str,
    *,
    cost_nanodollars: int,
    calls_unpriced: int,
    duration_ms: float,
    limits: AlertThresholds = LIMITS,
) -> list[Alert]:
    """A cost alert fires when the limit is reached, a duration alert when it is exceeded."""
    found: list[Alert] = []
    if cost_nanodollars >= limits.cost_critical_nanodollars:
        limit = limits.cost_critical_nanodollars
        found.append(Alert(kind="cost", level="critical", value=cost_nanodollars, limit=limit))
    elif cost_nanodollars >= limits.cost_warning_nanodollars:
        limit = limits.cost_warning_nanodollars
        found.append(Alert(kind="cost", level="warning", value=cost_nanodollars, limit=limit))
    if calls_unpriced:
        found.append(Alert(kind="unpriced", level="warning", value=calls_unpriced, limit=0))
    duration_max_ms = limits.duration_max_ms.get(analysis_type)
    if duration_max_ms is not None and duration_ms > duration_max_ms:
        found.append(Alert(kind="duration", level="warning", value=duration_ms, limit=duration_max_ms))
    return found
