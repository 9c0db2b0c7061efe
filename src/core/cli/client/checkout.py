"""Checkout over the API, and payment on the simulator's checkout page."""

import asyncio
from urllib.parse import urlsplit

import click
import httpx

from core.cli.client.api_client import Api
from core.cli.client.connection import LOOPBACK_NAMES
from features.billing.controllers.schemas import CheckoutResponse
from features.credits.domain.ledger import Balance

PATH = "/v1/billing"
SIMULATED_PAGE = "/stripe/pay/"  # path of the simulator's checkout page; Stripe's own is on another host
TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.25


class NotPayable(click.ClickException):
    def __init__(self) -> None:
        super().__init__(
            "--pay works with simulated Stripe only. This checkout takes real money: open its URL."
        )


async def open_checkout(api: Api, **offer: str) -> CheckoutResponse:
    """Takes either ``plan`` or ``pack``."""
    return await api.post(f"{PATH}/checkout", CheckoutResponse, offer)


async def pay(api: Api, checkout: CheckoutResponse) -> CheckoutResponse:
    """Pays on the simulator's checkout page; returns when the purchase is completed. Raises NotPayable for
    Stripe's own page.
    """
    url = checkout.url or ""
    if not is_simulated(url):
        raise NotPayable
    try:
        async with httpx.AsyncClient(trust_env=False) as http:
            page = await http.post(url, data={"answer": "pay"})
    except httpx.HTTPError as error:
        raise click.ClickException(
            f"The checkout page at {url} does not respond ({type(error).__name__})."
        ) from None
    if not page.is_success or "Thank you" not in page.text:
        raise click.ClickException(f"The payment was declined. Open the checkout page: {url}")
    return await _wait_until_completed(api, checkout)


def is_simulated(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.hostname in LOOPBACK_NAMES and parts.path.startswith(SIMULATED_PAGE)
    except ValueError:
        return False


async def credits_available(api: Api) -> int:
    return (await api.get("/v1/credits/balance", Balance)).credits_available


async def _wait_until_completed(api: Api, checkout: CheckoutResponse) -> CheckoutResponse:
    """Polls until the server has processed Stripe's event, which arrives shortly after the payment."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while checkout.status != "completed":
                await asyncio.sleep(POLL_INTERVAL_S)
                checkout = await api.get(f"{PATH}/checkouts/{checkout.checkout_id}", CheckoutResponse)
    except TimeoutError:
        raise click.ClickException(
            f"It is paid, but the server has not received Stripe's event within {TIMEOUT_S:.0f} s."
        ) from None
    return checkout
