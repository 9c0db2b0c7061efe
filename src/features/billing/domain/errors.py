"""Errors of Stripe's API. None of them contains text from Stripe."""

from shared.errors import NotFound, PaymentRequired, Unavailable, UpstreamFailed


class PriceUnknown(UpstreamFailed):
    """A subscription has a price that we did not publish: an old one, or one created by hand."""

    code = "price_unknown"

    def __init__(self, price_id: str) -> None:
        super().__init__(price_id)
        self.price_id = price_id

    def __str__(self) -> str:
        return f"No plan is sold at Stripe's price {self.price_id}."


class StripeShapeUnknown(UpstreamFailed):
    """Stripe's response lacks a required field in every supported API version."""

    code = "stripe_shape_unknown"

    def __init__(self, kind: str, field: str) -> None:
        super().__init__(kind, field)
        self.kind, self.field = kind, field

    def __str__(self) -> str:
        return f"Stripe's {self.kind} came without {self.field}."


class CheckoutNotOurs(UpstreamFailed):
    """A checkout session without an account in its metadata."""

    code = "checkout_not_ours"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"Stripe's checkout {self.session_id} belongs to no account of ours."


class StripeObjectMissing(NotFound):
    code = "stripe_has_none"

    def __str__(self) -> str:
        return "Stripe has no such thing."


class PaymentsUnavailable(Unavailable):
    code = "payments_unavailable"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # our own code, never Stripe's text

    def __str__(self) -> str:
        return f"Payments do not answer just now ({self.reason}). Nothing was charged twice; try again."


class PaymentsRefused(UpstreamFailed):
    """Stripe rejected the request; a retry would be rejected too."""

    code = "payments_refused"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # Stripe's code

    def __str__(self) -> str:
        return f"Stripe refused this ({self.reason}). Nothing was charged."


class SubscriptionBusy(Unavailable):
    code = "subscription_busy"
    retry_after_s = 5

    def __str__(self) -> str:
        return "Another change of this subscription is still in progress. Try again in a moment."


class BillingNotConfigured(Unavailable):
    code = "billing_not_configured"

    def __str__(self) -> str:
        return "Nothing can be bought here: billing is not set up."


class PaymentFailed(PaymentRequired):
    code = "payment_failed"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # Stripe's code, such as card_declined

    def __str__(self) -> str:
        return f"The payment did not go through ({self.reason}). Nothing has changed; try another card."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"reason": self.reason}
