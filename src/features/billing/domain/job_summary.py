"""Counts and discrepancies of a reconciliation job."""

from collections import Counter
from dataclasses import dataclass, field

import msgspec


class Discrepancy(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    subject: str  # Stripe's object id


@dataclass(slots=True)
class JobSummary:
    counts: Counter[str] = field(default_factory=Counter[str])
    discrepancies: list[Discrepancy] = field(default_factory=list[Discrepancy])

    def add_discrepancy(self, kind: str, subject: str) -> None:
        self.counts["findings"] += 1
        self.discrepancies.append(Discrepancy(kind=kind, subject=subject))
