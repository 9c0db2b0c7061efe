"""Tests of the demonstration that scripts/run shows."""

import io

import click
import pytest
from rich.console import Console

from core.cli.demo import run_demo
from features.credits.domain.ledger import Entry
from tests.integration.cli.responses import (
    ANALYSIS,
    BUSINESS,
    COMPLETED,
    COSTS,
    FAILED,
    RUN,
    STARTED,
    example,
    shown,
)
from tests.integration.cli.test_billing_command import balance, checkout, purchase
from tests.support.scripted_server import http

ENTRY = example(Entry, credits_delta=-5)
BEGINNING = (
    http(200, {}),
    balance(25),
    http(201, BUSINESS),
    STARTED,
    shown(RUN),
)


async def test_demo_goes_from_sign_up_to_the_statement(server):
    server.script(
        *BEGINNING,
        shown(COMPLETED, '"5"'),
        http(200, ANALYSIS),
        http(200, COSTS),
        *purchase(server.url, before=20, after=120),
        http(200, {"items": [ENTRY]}),
    )
    console = Console(file=io.StringIO(), width=120)

    await run_demo(server.url, token="user", operator_token="operator", console=console)

    text = console.file.getvalue()
    for said in ("25 credits", "Seasonal Table", "Completed", "72 of 100", "provider: simulator", "margin"):
        assert said in text
    assert "20 before, 120 now" in text
    assert "Credit statement" in text
    assert "-5" in text
    by = {asked.path.partition("?")[0]: asked.headers.get("authorization") for asked in server.asked}
    assert by["/v1/analyses"] == "Bearer user"
    assert [path for path, token in by.items() if token == "Bearer operator"] == [server.asked[7].path]


async def test_demo_does_not_pay_with_real_money(server):
    server.script(
        *BEGINNING,
        shown(COMPLETED, '"5"'),
        http(200, ANALYSIS),
        http(200, COSTS),
        balance(20),
        checkout("https://checkout.stripe.com/c/pay/cs_1"),
        http(200, {"items": [ENTRY]}),
    )
    console = Console(file=io.StringIO(), width=120)

    await run_demo(server.url, token="user", operator_token="operator", console=console)

    assert "https://checkout.stripe.com/c/pay/cs_1" in console.file.getvalue()


async def test_demo_reports_a_failed_analysis(server):
    server.script(*BEGINNING, shown(FAILED, '"5"'))

    with pytest.raises(click.ClickException, match=r"failed \(private\)"):
        await run_demo(
            server.url, token="user", operator_token="operator", console=Console(file=io.StringIO())
        )
