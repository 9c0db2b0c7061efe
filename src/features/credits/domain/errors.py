from shared.errors import Conflict, Invalid, NotFound, PaymentRequired


class InsufficientCredits(PaymentRequired):
    code = "insufficient_credits"

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(needed, available)
        self.needed, self.available = needed, available

    def __str__(self) -> str:
        return f"This needs {self.needed} credits; {self.available} are available."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"needed": self.needed, "available": self.available}


class ApiKeyCapReached(PaymentRequired):
    code = "api_key_cap_reached"

    def __init__(self, needed: int, cap: int) -> None:
        super().__init__(needed, cap)
        self.needed, self.cap = needed, cap

    def __str__(self) -> str:
        return f"This needs {self.needed} credits; the API key may spend {self.cap} a month. Raise its cap."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"needed": self.needed, "cap": self.cap}


class ReferenceReused(Conflict):
    code = "reference_reused"

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.reference = reference

    def __str__(self) -> str:
        return f"The reference {self.reference!r} was used before with other content."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"reference": self.reference}


class HoldNotFound(NotFound):
    code = "hold_not_found"

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.reference = reference

    def __str__(self) -> str:
        return f"No credits were held or spent under {self.reference!r}."


class HoldIsClosed(Conflict):
    code = "hold_is_closed"

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.reference = reference

    def __str__(self) -> str:
        return f"The hold {self.reference!r} has already ended the other way."


class SettlementExceedsHold(Invalid):
    code = "settlement_exceeds_hold"

    def __init__(self, spent: int, held: int) -> None:
        super().__init__(spent, held)
        self.spent, self.held = spent, held

    def __str__(self) -> str:
        return f"{self.spent} credits cannot be spent from a hold of {self.held}."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"spent": self.spent, "held": self.held}


class RefundExceedsCharge(Invalid):
    code = "refund_exceeds_charge"

    def __init__(self, credits_wanted: int, refundable: int) -> None:
        super().__init__(credits_wanted, refundable)
        self.credits_wanted, self.refundable = credits_wanted, refundable

    def __str__(self) -> str:
        return f"{self.credits_wanted} credits cannot be refunded; {self.refundable} are left to refund."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"wanted": self.credits_wanted, "refundable": self.refundable}


class TransactionTypeInvalid(Invalid):
    code = "transaction_type_invalid"

    def __init__(self, transaction_type: str) -> None:
        super().__init__(transaction_type)
        self.transaction_type = transaction_type

    def __str__(self) -> str:
        return f"Credits do not move this way for {self.transaction_type!r}."


class LedgerChangeInvalid(Invalid):
    code = "movement_invalid"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason
