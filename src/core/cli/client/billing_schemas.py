"""Response schemas of the billing API, and sentences that describe them."""

from datetime import datetime

from core.cli.client.checkout import money
from core.cli.client.schemas import Answer
from core.cli.output.run_text import counted
from shared.text import plain


class Plan(Answer, frozen=True, kw_only=True):
    name: str
    title: str
    monthly_credits: int
    price_cents: int
    currency: str


class Pack(Answer, frozen=True, kw_only=True):
    name: str
    title: str
    credits: int
    price_cents: int
    currency: str


class Offers(Answer, frozen=True, kw_only=True):
    plans: list[Plan]
    packs: list[Pack]


class Subscription(Answer, frozen=True, kw_only=True):
    plan: str
    plan_in_force: str
    status: str
    monthly_credits: int
    credits_granted: int
    price_cents: int
    currency: str
    period_end: datetime
    next_plan: str | None = None
    cancels_at: datetime | None = None


class Preview(Answer, frozen=True, kw_only=True):
    preview_id: str
    plan: str
    direction: str
    effective_at: datetime
    due_now_cents: int
    currency: str
    credits_now: int
    credits_monthly: int
    price_cents: int


class Invoice(Answer, frozen=True, kw_only=True):
    number: str | None = None
    status: str
    due_cents: int
    currency: str
    created_at: datetime
    hosted_url: str | None = None


class Invoices(Answer, frozen=True, kw_only=True):
    items: list[Invoice]
    next_cursor: str | None = None


def in_words(subscription: Subscription) -> str:
    price = money(subscription.price_cents, subscription.currency) if subscription.price_cents else "free"
    end = f"{subscription.period_end:%Y-%m-%d}"
    follows = f"renews on {end}"
    if subscription.cancels_at is not None:
        follows = f"ends on {subscription.cancels_at:%Y-%m-%d}"
    elif subscription.next_plan is not None:
        follows = f"becomes {plain(subscription.next_plan)} on {end}"
    credits_monthly = counted(subscription.monthly_credits, "credit")
    named = plain(subscription.plan)
    if subscription.plan_in_force != subscription.plan:
        named += f" (in force: {plain(subscription.plan_in_force)})"
    return f"{named}, {plain(subscription.status)}: {credits_monthly} a month, {price}; {follows}."


def change_in_words(preview: Preview) -> str:
    price = money(preview.price_cents, preview.currency)
    later = f"{price} for {counted(preview.credits_monthly, 'credit')} a month"
    if preview.direction == "upgrade":
        now = money(preview.due_now_cents, preview.currency)
        credits_now = counted(preview.credits_now, "credit")
        return f"{plain(preview.plan)} at once: {now} for {credits_now} now, then {later}."
    begins = f"{preview.effective_at:%Y-%m-%d}"
    return f"{plain(preview.plan)} from {begins} on: {later}. Nothing is due now."
