"""Checkout over the API, and payment on the simulator's checkout page."""

import asyncio
from datetime import datetime
from urllib.parse import urlsplit

import click
import httpx

from core.cli.client.api_client import Api
from core.cli.client.connection import LOOPBACK_NAMES
from core.cli.client.schemas import Answer

PATH = "/v1/billing"
TILL = "/stripe/pay/"  # path of the simulator's checkout page; Stripe's own is on another host
PATIENCE_S = 60.0
PAUSE_S = 0.25


class Checkout(Answer, frozen=True, kw_only=True):
    checkout_id: str
    status: str
    url: str | None = None
    expires_at: datetime | None = None
    credits: int
    price_cents: int
    currency: str


class NotPayable(click.ClickException):
    def __init__(self) -> None:
        super().__init__("--pay presses the button of the simulated till. This is a real one: pay there.")


async def open_checkout(api: Api, **what: str) -> Checkout:
    """Takes either ``plan`` or ``pack``."""
    return await api.post(f"{PATH}/checkout", Checkout, what)


async def pay(api: Api, checkout: Checkout) -> Checkout:
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
        raise click.ClickException(f"The till at {url} does not answer ({type(error).__name__}).") from None
    if not page.is_success or "Thank you" not in page.text:
        raise click.ClickException("The till did not take the payment. Look at it: " + url)
    return await _delivered(api, checkout)


def is_simulated(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.hostname in LOOPBACK_NAMES and parts.path.startswith(TILL)
    except ValueError:
        return False


async def _delivered(api: Api, checkout: Checkout) -> Checkout:
    """Polls until the server has processed Stripe's event, which arrives shortly after the payment."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while checkout.status != "completed":
                await asyncio.sleep(PAUSE_S)
                checkout = await api.get(f"{PATH}/checkouts/{checkout.checkout_id}", Checkout)
    except TimeoutError:
        raise click.ClickException(
            f"It is paid, but after {PATIENCE_S:.0f} s the server has not heard of it from Stripe."
        ) from None
    return checkout


def money(cents: int, currency: str) -> str:
    return f"{cents / 100:,.2f} {currency.upper()}"
