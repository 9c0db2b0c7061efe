"""Assembly of the simulated Stripe."""

from pathlib import Path

from litestar import Router

from simulators.stripe.control import control_router
from simulators.stripe.events.delivery_worker import EventDeliveryWorker
from simulators.stripe.http.api import PATH, api_router
from simulators.stripe.http.pages import pages_router
from simulators.stripe.store import Store


class StripeSimulator:
    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.delivery_worker = EventDeliveryWorker(self.store)

    @staticmethod
    def routers() -> tuple[Router, ...]:
        return api_router(), pages_router(PATH), control_router()
