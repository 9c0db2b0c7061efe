from shared.errors import Conflict, Invalid, PaymentRequired


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
