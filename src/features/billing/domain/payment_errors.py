"""Errors for billing requests that the account's state or the catalog does not permit."""

from shared.errors import Conflict, Invalid, NotFound


class PlanUnknown(Invalid):
    code = "plan_unknown"

    def __init__(self, plan: str) -> None:
        super().__init__(plan)
        self.plan = plan

    def __str__(self) -> str:
        return f"There is no plan {self.plan} to buy. GET /v1/billing/plans lists them."


class PackUnknown(Invalid):
    code = "pack_unknown"

    def __init__(self, pack: str) -> None:
        super().__init__(pack)
        self.pack = pack

    def __str__(self) -> str:
        return f"There is no pack {self.pack} to buy. GET /v1/billing/plans lists them."


class PlanNotSold(Invalid):
    code = "plan_not_sold"

    def __init__(self, plan: str) -> None:
        super().__init__(plan)
        self.plan = plan

    def __str__(self) -> str:
        return f"The plan {self.plan} is not bought. Cancel the subscription to come back to it."


class OrderUnclear(Invalid):
    code = "order_unclear"

    def __str__(self) -> str:
        return "Send either a plan or a pack."


class ReturnAddressForeign(Invalid):
    code = "return_address_foreign"

    def __init__(self, field: str, origin: str) -> None:
        super().__init__(field, origin)
        self.field, self.origin = field, origin

    def __str__(self) -> str:
        return f"{self.field} leads elsewhere. Send an address that begins with {self.origin}/."


class CheckoutNotFound(NotFound):
    code = "checkout_not_found"

    def __str__(self) -> str:
        return "There is no such checkout, or it is not yours."


class CheckoutClosed(Conflict):
    code = "checkout_closed"

    def __str__(self) -> str:
        return "This checkout is over. Begin a new one, with a new Idempotency-Key."


class CheckoutCompleted(Conflict):
    code = "checkout_completed"
    retry_after_s = 5

    def __str__(self) -> str:
        return "A checkout of this account was paid just now and is being booked. Look again in a moment."


class AlreadySubscribed(Conflict):
    code = "already_subscribed"

    def __init__(self, plan: str) -> None:
        super().__init__(plan)
        self.plan = plan

    def __str__(self) -> str:
        return f"The account is subscribed to {self.plan}. Change the plan instead of buying another one."


class NoSubscription(Conflict):
    code = "no_subscription"

    def __str__(self) -> str:
        return "The account has no paid subscription. Begin one with a checkout."


class PlanUnchanged(Conflict):
    code = "plan_unchanged"

    def __init__(self, plan: str) -> None:
        super().__init__(plan)
        self.plan = plan

    def __str__(self) -> str:
        return f"The account is on {self.plan} already. Resume it if another one is to follow."


class PreviewExpired(Conflict):
    code = "preview_expired"

    def __str__(self) -> str:
        return "This is not what was previewed, or too long ago. Ask for a new preview."


class PaymentOverdue(Conflict):
    code = "payment_overdue"

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"The subscription is {self.status}. Pay what is due in the portal before you change the plan."


class CancellationPending(Conflict):
    code = "cancellation_pending"

    def __str__(self) -> str:
        return "The subscription is about to end. Resume it before you change the plan."


class AlreadyCancelled(Conflict):
    code = "already_cancelled"

    def __str__(self) -> str:
        return "The subscription ends with its period already."


class NothingToResume(Conflict):
    code = "nothing_to_resume"

    def __str__(self) -> str:
        return "The subscription goes on as it is: nothing is planned that could be taken back."
