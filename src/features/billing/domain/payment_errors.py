"""Errors for billing requests that the account's state or the catalog does not permit."""

from shared.errors import Conflict, Invalid, NotFound


class PlanUnknown(Invalid):
    code = "plan_unknown"
    text = "There is no plan {plan} to buy. GET /v1/billing/plans lists them."


class PackUnknown(Invalid):
    code = "pack_unknown"
    text = "There is no pack {pack} to buy. GET /v1/billing/plans lists them."


class PlanNotSold(Invalid):
    code = "plan_not_sold"
    text = "The plan {plan} is not bought. Cancel the subscription to come back to it."


class OrderUnclear(Invalid):
    code = "order_unclear"
    text = "Send either a plan or a pack."


class ReturnAddressForeign(Invalid):
    code = "return_address_foreign"
    text = "{field} leads elsewhere. Send an address that begins with {origin}/."


class CheckoutNotFound(NotFound):
    code = "checkout_not_found"
    text = "There is no such checkout, or it is not yours."


class CheckoutClosed(Conflict):
    code = "checkout_closed"
    text = "This checkout is over. Begin a new one, with a new Idempotency-Key."


class CheckoutCompleted(Conflict):
    code = "checkout_completed"
    text = "A checkout of this account was paid just now and is being booked. Look again in a moment."
    retry_after_s = 5


class AlreadySubscribed(Conflict):
    code = "already_subscribed"
    text = "The account is subscribed to {plan}. Change the plan instead of buying another one."


class NoSubscription(Conflict):
    code = "no_subscription"
    text = "The account has no paid subscription. Begin one with a checkout."


class PlanUnchanged(Conflict):
    code = "plan_unchanged"
    text = "The account is on {plan} already. Resume it if another one is to follow."


class PreviewExpired(Conflict):
    code = "preview_expired"
    text = "This is not what was previewed, or too long ago. Ask for a new preview."


class PaymentOverdue(Conflict):
    code = "payment_overdue"
    text = "The subscription is {status}. Pay what is due in the portal before you change the plan."


class CancellationPending(Conflict):
    code = "cancellation_pending"
    text = "The subscription is about to end. Resume it before you change the plan."


class AlreadyCancelled(Conflict):
    code = "already_cancelled"
    text = "The subscription ends with its period already."


class NothingToResume(Conflict):
    code = "nothing_to_resume"
    text = "The subscription goes on as it is: nothing is planned that could be taken back."
