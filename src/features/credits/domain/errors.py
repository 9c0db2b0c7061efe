from shared.errors import Conflict, Invalid, PaymentRequired


class InsufficientCredits(PaymentRequired):
    code = "insufficient_credits"
    text = "This needs {needed} credits; {available} are available."
    public = ("needed", "available")


class ApiKeyCapReached(PaymentRequired):
    code = "api_key_cap_reached"
    text = "This needs {needed} credits; the API key may spend {cap} a month. Raise its cap."
    public = ("needed", "cap")


class ReferenceReused(Conflict):
    code = "reference_reused"
    text = "The reference {reference!r} was used before with other content."
    public = ("reference",)


class TransactionTypeInvalid(Invalid):
    code = "transaction_type_invalid"
    text = "Transactions of type {transaction_type!r} cannot change credits in this direction."


class LedgerChangeInvalid(Invalid):
    code = "ledger_change_invalid"
    text = "{reason}"
