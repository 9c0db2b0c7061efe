"""Plans, packs and their offers."""

from typing import Literal

import msgspec


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    rank: int
    monthly_credits: int
    price_cents: int  # per month; 0: not sold
    currency: str
    business_profiles_max: int | None  # None: unlimited
    runs_at_once: int
    bulk_max: int
    light_per_hour: int
    history_days: int | None  # None: unlimited


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """Credits that are bought once and do not expire."""

    name: str
    title: str
    credits: int
    price_cents: int
    currency: str


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A plan or a pack as it is published at Stripe."""

    kind: Literal["plan", "pack"]
    name: str
    title: str
    credits: int
    price_cents: int
    currency: str

    @property
    def lookup_key(self) -> str:
        """Key of the offer's price at Stripe; contains the amount because Stripe's prices are immutable."""
        return f"oslira_{self.kind}_{self.name}_{self.price_cents}_{self.currency}"


class Published(msgspec.Struct, frozen=True, kw_only=True):
    offer: Offer
    price_id: str
    is_new: bool


def offer_of(item: Plan | Pack) -> Offer:
    is_plan = isinstance(item, Plan)
    return Offer(
        kind="plan" if is_plan else "pack",
        name=item.name,
        title=item.title,
        credits=item.monthly_credits if is_plan else item.credits,
        price_cents=item.price_cents,
        currency=item.currency,
    )
