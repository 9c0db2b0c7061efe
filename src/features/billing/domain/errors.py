"""Errors of Stripe's API. None of them contains text from Stripe."""

from shared.errors import NotFound, PaymentRequired, Unavailable, UpstreamFailed


class PriceUnknown(UpstreamFailed):
    """A subscription has a price that we did not publish: an old one, or one created by hand."""

    code = "price_unknown"
    text = "No plan has the Stripe price {price_id}."


class StripeShapeUnknown(UpstreamFailed):
    """Stripe's response lacks a required field in every supported API version."""

    code = "stripe_response_invalid"
    text = "Stripe's {kind} has no {field}."


class CheckoutNotOurs(UpstreamFailed):
    """A checkout session without an account in its metadata."""

    code = "checkout_not_ours"
    text = "The Stripe checkout {session_id} belongs to no account."


class StripeObjectMissing(NotFound):
    code = "stripe_object_missing"
    text = "Stripe has no such object."


class PaymentsUnavailable(Unavailable):
    code = "payments_unavailable"
    text = "The payment service is unavailable ({reason}). Nothing was charged twice; try again."
    reason: str  # our own code, never Stripe's text


class PaymentsRefused(UpstreamFailed):
    """Stripe rejected the request; a retry would be rejected too."""

    code = "payments_refused"
    text = "Stripe rejected the request ({reason}). Nothing was charged."
    reason: str  # Stripe's code


class SubscriptionBusy(Unavailable):
    code = "subscription_busy"
    text = "Another change of this subscription is still in progress. Try again in a moment."
    retry_after_s = 5


class BillingNotConfigured(Unavailable):
    code = "billing_not_configured"
    text = "Billing is not configured, so nothing can be bought."


class PaymentFailed(PaymentRequired):
    code = "payment_failed"
    text = "The payment failed ({reason}). Nothing has changed; try another card."
    public = ("reason",)
