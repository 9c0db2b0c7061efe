"""Errors of billing. None of them contains text from Stripe."""

from shared.errors import Conflict, Invalid, NotFound, PaymentRequired, Unavailable, UpstreamFailed


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


class PlanUnknown(Invalid):
    code = "plan_unknown"
    text = "There is no plan {plan} for sale. GET /v1/billing/plans lists the plans."


class PackUnknown(Invalid):
    code = "pack_unknown"
    text = "There is no pack {pack} for sale. GET /v1/billing/plans lists the packs."


class PlanNotSold(Invalid):
    code = "plan_not_sold"
    text = "The plan {plan} is not for sale. Cancel the subscription to return to it."


class OrderUnclear(Invalid):
    code = "order_unclear"
    text = "Send either a plan or a pack."


class ReturnAddressForeign(Invalid):
    code = "return_address_foreign"
    text = "{field} has another origin. Send a URL that begins with {origin}/."


class CheckoutNotFound(NotFound):
    code = "checkout_not_found"
    text = "There is no such checkout, or it is not yours."


class CheckoutClosed(Conflict):
    code = "checkout_closed"
    text = "This checkout has ended. Start a new one with a new Idempotency-Key."


class CheckoutCompleted(Conflict):
    code = "checkout_completed"
    text = "A checkout of this account was paid a moment ago and is being processed. Try again in a moment."
    retry_after_s = 5


class AlreadySubscribed(Conflict):
    code = "already_subscribed"
    text = "The account is subscribed to {plan}. Change the plan instead of buying another one."


class NoSubscription(Conflict):
    code = "no_subscription"
    text = "The account has no paid subscription. Start one with a checkout."


class PlanUnchanged(Conflict):
    code = "plan_unchanged"
    text = "The account has the plan {plan} already. Resume it to cancel a planned change."


class PreviewExpired(Conflict):
    code = "preview_expired"
    text = "The change differs from the preview, or the preview has expired. Request a new preview."


class PaymentOverdue(Conflict):
    code = "payment_overdue"
    text = "The subscription is {status}. Pay the open invoice in the portal before you change the plan."


class CancellationPending(Conflict):
    code = "cancellation_pending"
    text = "The subscription is cancelled at the end of its period. Resume it before you change the plan."


class AlreadyCancelled(Conflict):
    code = "already_cancelled"
    text = "The subscription is already cancelled at the end of its period."


class NothingToResume(Conflict):
    code = "nothing_to_resume"
    text = "The subscription has no planned change or cancellation."
