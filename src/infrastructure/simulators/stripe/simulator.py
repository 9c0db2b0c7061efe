"""Stripe, put together."""

from pathlib import Path

from litestar import Router

from infrastructure.simulators.stripe.api import PATH, api_router
from infrastructure.simulators.stripe.control import control_router
from infrastructure.simulators.stripe.courier import Courier
from infrastructure.simulators.stripe.pages import pages_router
from infrastructure.simulators.stripe.store import Store


class StripeSimulator:
    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.courier = Courier(self.store)

    @staticmethod
    def routers() -> tuple[Router, ...]:
        return api_router(), pages_router(PATH), control_router()
