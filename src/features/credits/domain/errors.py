from shared.errors import Conflict, Invalid, NotFound, PaymentRequired


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


class HoldNotFound(NotFound):
    code = "hold_not_found"
    text = "No credits were held or spent under {reference!r}."


class HoldIsClosed(Conflict):
    code = "hold_is_closed"
    text = "The hold {reference!r} was already settled or released."


class SettlementExceedsHold(Invalid):
    code = "settlement_exceeds_hold"
    text = "{spent} credits cannot be spent from a hold of {held}."
    public = ("spent", "held")


class RefundExceedsCharge(Invalid):
    code = "refund_exceeds_charge"
    text = "{wanted} credits cannot be refunded; {refundable} are left to refund."
    public = ("wanted", "refundable")


class TransactionTypeInvalid(Invalid):
    code = "transaction_type_invalid"
    text = "Transactions of type {transaction_type!r} cannot change credits in this direction."


class LedgerChangeInvalid(Invalid):
    code = "ledger_change_invalid"
    text = "{reason}"
