"""Errors of Stripe's API. None of them contains text from Stripe."""

from shared.errors import NotFound, PaymentRequired, Unavailable, UpstreamFailed


class PriceUnknown(UpstreamFailed):
    """A subscription has a price that we did not publish: an old one, or one created by hand."""

    code = "price_unknown"
    text = "No plan is sold at Stripe's price {price_id}."


class StripeShapeUnknown(UpstreamFailed):
    """Stripe's response lacks a required field in every supported API version."""

    code = "stripe_shape_unknown"
    text = "Stripe's {kind} came without {field}."


class CheckoutNotOurs(UpstreamFailed):
    """A checkout session without an account in its metadata."""

    code = "checkout_not_ours"
    text = "Stripe's checkout {session_id} belongs to no account of ours."


class StripeObjectMissing(NotFound):
    code = "stripe_has_none"
    text = "Stripe has no such thing."


class PaymentsUnavailable(Unavailable):
    code = "payments_unavailable"
    text = "Payments do not answer just now ({reason}). Nothing was charged twice; try again."
    reason: str  # our own code, never Stripe's text


class PaymentsRefused(UpstreamFailed):
    """Stripe rejected the request; a retry would be rejected too."""

    code = "payments_refused"
    text = "Stripe refused this ({reason}). Nothing was charged."
    reason: str  # Stripe's code


class SubscriptionBusy(Unavailable):
    code = "subscription_busy"
    text = "Another change of this subscription is still in progress. Try again in a moment."
    retry_after_s = 5


class BillingNotConfigured(Unavailable):
    code = "billing_not_configured"
    text = "Nothing can be bought here: billing is not set up."


class PaymentFailed(PaymentRequired):
    code = "payment_failed"
    text = "The payment did not go through ({reason}). Nothing has changed; try another card."
    public = ("reason",)
