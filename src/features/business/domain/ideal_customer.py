import math

import msgspec

from features.business.domain.errors import ProfileInvalid
from features.business.domain.texts import items

FOLLOWERS_MAX = 10_000_000_000
ENGAGEMENT_RATE_MAX = 100
LISTS = ("niches", "content_themes", "geographies", "exclusions")


class IdealCustomer(msgspec.Struct, frozen=True, kw_only=True):
    """The customer that the business wants to reach. ``engagement_rate_min`` is in percent, two decimals."""

    followers_min: int | None = None
    followers_max: int | None = None
    engagement_rate_min: float | None = None
    niches: tuple[str, ...] = ()
    content_themes: tuple[str, ...] = ()
    geographies: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = ()

    def checked(self) -> "IdealCustomer":
        """Returns a normalized copy. Raises ProfileInvalid."""
        _check_followers("ideal_customer.followers_min", self.followers_min)
        _check_followers("ideal_customer.followers_max", self.followers_max)
        if (
            self.followers_min is not None
            and self.followers_max is not None
            and self.followers_min > self.followers_max
        ):
            raise ProfileInvalid(
                field="ideal_customer.followers_max", reason="Send a number that is not below followers_min."
            )
        return msgspec.structs.replace(
            self,
            engagement_rate_min=_checked_rate(self.engagement_rate_min),
            **{name: items(f"ideal_customer.{name}", getattr(self, name)) for name in LISTS},
        )

    def violations(self, followers: int, engagement_rate: float | None) -> list[str]:
        """Names of the violated bounds. An unknown engagement rate violates nothing."""
        found: list[str] = []
        if self.followers_min is not None and followers < self.followers_min:
            found.append("followers_below_min")
        if self.followers_max is not None and followers > self.followers_max:
            found.append("followers_above_max")
        if (
            self.engagement_rate_min is not None
            and engagement_rate is not None
            and engagement_rate < self.engagement_rate_min
        ):
            found.append("engagement_rate_below_min")
        return found


def _check_followers(field: str, followers: int | None) -> None:
    if followers is not None and not 0 <= followers <= FOLLOWERS_MAX:
        raise ProfileInvalid(field=field, reason=f"Send a whole number from 0 to {FOLLOWERS_MAX}.")


def _checked_rate(rate: float | None) -> float | None:
    if rate is None:
        return None
    if not (math.isfinite(rate) and 0 <= rate <= ENGAGEMENT_RATE_MAX):
        raise ProfileInvalid(
            field="ideal_customer.engagement_rate_min",
            reason=f"Send a percentage from 0 to {ENGAGEMENT_RATE_MAX}.",
        )
    return round(float(rate), 2)
