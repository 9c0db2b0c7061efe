"""The ledger once more, in plain Python, as simply as it can be said. The SQL has to agree with it."""

from dataclasses import dataclass, field
from itertools import count

GRACE_DAYS = 7.0
NEVER = 1_000_000.0


@dataclass
class Lot:
    number: int
    granted: int
    available: int
    expires_in_days: float | None
    held: int = 0
    grace: float | None = None

    @property
    def lapse(self) -> float:
        if self.grace is not None:
            return self.grace
        return NEVER if self.expires_in_days is None else self.expires_in_days

    @property
    def order(self):
        return (self.lapse, self.number)


@dataclass
class Hold:
    kind: str
    placed: int
    status: str
    parts: list[list]  # lot, placed, spent, refunded
    spent: int = 0

    @property
    def refundable(self):
        return sum(spent - refunded for _, _, spent, refunded in self.parts)


@dataclass
class Model:
    lots: list[Lot] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    done: dict[tuple[str, str], tuple] = field(default_factory=dict)
    entries: int = 0
    _ticks: count = field(default_factory=count)

    @property
    def available(self):
        return sum(lot.available for lot in self.lots if lot.lapse > 0)

    @property
    def held(self):
        return sum(lot.held for lot in self.lots)

    def expire(self):
        for lot in self.lots:
            if lot.lapse <= 0 and lot.available:
                lot.available = 0
                self.entries += 1

    def _repeats(self, kind, reference, content):
        """None the first time; then whether the content is the same."""
        self.expire()
        known = self.done.get((kind, reference))
        if known is None:
            return None
        return "repeated" if known == content else "conflicting"

    def _did(self, kind, reference, content):
        self.done[kind, reference] = content
        self.entries += 1
        return "done"

    def grant(self, credits_granted, reference, expires_in_days):
        content = (credits_granted, expires_in_days)
        if outcome := self._repeats("grant", reference, content):
            return outcome
        number = self.entries + 1
        self.lots.append(Lot(number, credits_granted, credits_granted, expires_in_days))
        return self._did("grant", reference, content)

    def charge(self, kind, credits_wanted, reference):
        self.expire()
        if reference in self.holds:
            hold = self.holds[reference]
            same = (hold.kind, hold.placed) == (kind, credits_wanted)
            return "repeated" if same else "conflicting"
        if self.available < credits_wanted:
            return "insufficient"
        parts, left = [], credits_wanted
        for lot in sorted(self.lots, key=lambda lot: lot.order):
            taken = min(lot.available, left)
            if taken:
                lot.available -= taken
                lot.held += taken if kind == "hold" else 0
                parts.append([lot, taken, taken if kind == "spend" else 0, 0])
                left -= taken
        is_spend = kind == "spend"
        self.holds[reference] = Hold(
            kind,
            credits_wanted,
            "settled" if is_spend else "held",
            parts,
            credits_wanted if is_spend else 0,
        )
        self.entries += 1
        return "done"

    def close(self, reference, status, credits_spent):
        self.expire()
        hold = self.holds.get(reference)
        if hold is None:
            return "unknown_hold"
        if hold.status != "held":
            if hold.status != status:
                return "closed_hold"
            return "repeated" if hold.spent == credits_spent else "conflicting"
        if credits_spent > hold.placed:
            return "exceeds_hold"
        hold.status, hold.spent, left = status, credits_spent, credits_spent
        for part in sorted(hold.parts, key=lambda part: part[0].order):
            part[2] = min(part[1], left)
            left -= part[2]
            part[0].held -= part[1]
            self._put_back(part[0], part[1] - part[2])
        self.entries += 1
        return "done"

    def refund(self, hold_reference, credits_wanted, reference):
        if outcome := self._repeats("refund", reference, (hold_reference, credits_wanted)):
            return outcome
        hold = self.holds.get(hold_reference)
        if hold is None:
            return "unknown_hold"
        if credits_wanted > hold.refundable:
            return "exceeds_charge"
        left = credits_wanted
        for part in sorted(hold.parts, key=lambda part: part[0].order, reverse=True):
            back = min(part[2] - part[3], left)
            part[3] += back
            left -= back
            self._put_back(part[0], back)
        return self._did("refund", reference, (hold_reference, credits_wanted))

    def _put_back(self, lot, credits_back):
        if credits_back and lot.lapse <= 0:
            lot.grace = GRACE_DAYS + next(self._ticks) / 1e6
        lot.available += credits_back

    def let_lapse(self, lot):
        """Time passes for one lot: what was to come lies behind."""
        lot.grace = -1.0 - next(self._ticks) / 1e6
