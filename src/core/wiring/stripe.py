"""The way to Stripe: the real one, or the simulator, which is told where we listen for its events."""

from core.serving import Serving
from core.wiring.foundation import Foundation
from core.wiring.outside import Outside
from infrastructure.access import Access, Where
from infrastructure.simulators.stripe.registration import Registration

EVENTS_PATH = "/v1/webhooks/stripe"


def stripe_of(foundation: Foundation) -> Where | None:
    """None: there is none here."""
    outside = Outside(foundation.place, foundation.simulators)
    where = outside.where("stripe")
    if where is None or not outside.is_simulated("stripe"):
        return where
    return _introduced(where, foundation.serving)


def _introduced(where: Where, serving: Serving) -> Where:
    """Stripe's own address of us is set in its dashboard; a simulator has to be told, before anything happens
    that it would tell of.
    """
    registration = Registration()

    async def introduced() -> Access:
        access = await where()
        if serving.address is not None:
            await registration.ensure(access.url, serving.address + EVENTS_PATH)
        return access

    return introduced
