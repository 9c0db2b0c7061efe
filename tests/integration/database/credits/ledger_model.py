"""Reference model of the ledger in plain Python. The SQL must agree with it."""

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
class Debt:
    lot: Lot | None
    position: int
    owed: int
    paid: int = 0


@dataclass
class Model:
    lots: list[Lot] = field(default_factory=list)
    granted: dict[str, Lot] = field(default_factory=dict)
    debts: dict[str, Debt] = field(default_factory=dict)
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
        """Returns None for the first call, then whether the content is the same."""
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
        lot = self.granted[reference] = Lot(number, credits_granted, credits_granted, expires_in_days)
        self.lots.append(lot)
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
        self._pay_debts()
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
        self._did("refund", reference, (hold_reference, credits_wanted))
        self._pay_debts()
        return "done"

    def reclaim(self, grant_reference, credits_wanted, reference):
        self.expire()
        if reference in self.debts:
            return 0
        self.debts[reference] = Debt(self.granted.get(grant_reference), self.entries, credits_wanted)
        return self._pay(reference)

    def undo_reclaim(self, reference, undo_reference):
        self.expire()
        if reference in self.debts:
            self.debts[reference].owed = self.debts[reference].paid
        back = self.holds[reference].refundable if reference in self.holds else 0
        if back:
            self.refund(reference, back, undo_reference)
        return back

    def payers(self, debt):
        """Returns the lots of the debt's time, in the order in which they pay it."""
        old = [lot for lot in self.lots if lot.number <= debt.position]
        return sorted(old, key=lambda lot: (lot is not debt.lot, lot.order))

    def _pay_debts(self):
        for reference, _ in sorted(self.debts.items(), key=lambda item: (item[1].position, item[0])):
            self._pay(reference)

    def _pay(self, reference):
        debt = self.debts[reference]
        payment = min(debt.owed - debt.paid, sum(lot.available for lot in self.payers(debt)))
        if not payment:
            return 0
        hold = self.holds.setdefault(reference, Hold("spend", 0, "settled", []))
        left = payment
        for lot in self.payers(debt):
            taken = min(lot.available, left)
            lot.available -= taken
            left -= taken
            part = next((part for part in hold.parts if part[0] is lot), None)
            if part is None:
                hold.parts.append(part := [lot, 0, 0, 0])
            part[1] += taken
            part[2] += taken
        hold.placed += payment
        hold.spent += payment
        debt.paid += payment
        self.entries += 1
        return payment

    def _put_back(self, lot, credits_back):
        if credits_back and lot.lapse <= 0:
            lot.grace = GRACE_DAYS + next(self._ticks) / 1e6
        lot.available += credits_back

    def let_lapse(self, lot):
        """Moves the expiry of one lot into the past."""
        lot.grace = -1.0 - next(self._ticks) / 1e6
