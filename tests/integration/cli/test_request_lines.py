"""Tests of the line that a serving command prints for each request."""

import io

import httpx
import pytest
from litestar import Litestar, get
from rich.console import Console

from core.cli.output.request_lines import RequestLines


@get("/found")
async def found() -> str:
    return "x"


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=80)


@pytest.fixture
async def request_lines(console):
    return RequestLines(console, is_active=True)


@pytest.fixture
async def client(request_lines):
    transport = httpx.ASGITransport(request_lines.wrap(Litestar([found])))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


async def test_line_has_method_path_status_and_duration_without_the_query(client, console):
    await client.get("/found?token=secret")
    await client.get("/missing/%1b[31m")

    first, second = console.file.getvalue().splitlines()
    assert first.startswith("GET    /found  200  ")
    assert first.endswith(" ms")
    assert second.startswith("GET    /missing/[31m  404  ")


async def test_inactive_lines_are_not_printed(client, console, request_lines):
    request_lines.is_active = False
    await client.get("/found")

    assert console.file.getvalue() == ""
