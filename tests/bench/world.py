"""The application in this process, with its own simulators as providers."""

import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
from place import Place
from tenants import ENTRIES_FEW, make_tenant

from core.wiring.application import Application, build
from core.wiring.bootstrap import read_runtime
from shared.ids import AccountId
from shared.llm import CostOwner, StructuredPrompt
from simulators.supervisor import Simulators

TASK = "analysis.deep.core"
STABLE = ("The business sells flour and yeast to bakers. " * 80, "Judge how well the profile fits. " * 10)


class Verdict(msgspec.Struct, frozen=True):
    overall_score: int
    niche_fit: int
    summary: str
    reasons: list[str]


class World:
    """The application with its production wiring and simulators without latency."""

    def __init__(
        self,
        application: Application,
        http: httpx.AsyncClient,
        cost_owner: CostOwner,
        environ: Mapping[str, str],
    ) -> None:
        self.application = application
        self.http = http
        self.address = str(http.base_url).rstrip("/")
        self.cost_owner = cost_owner
        self.environ = environ  # for other processes that use the same simulators
        self._numbers = itertools.count()

    def prompt(self) -> StructuredPrompt[Verdict]:
        """Returns a different prompt each time, because the completion of a repeated one is cached."""
        text = f"followers: {next(self._numbers)}\nbiography: bread, every morning\n" * 20
        return StructuredPrompt(
            task=TASK,
            cached_prefix=STABLE,
            user_message=text,
            output_type=Verdict,
            cost_owner=self.cost_owner,
        )

    async def ask(self) -> None:
        await self.application.resources.providers.gateway.complete(self.prompt())

    async def take_ms(self, routes: Mapping[str, int]) -> None:
        """Sets a fixed latency for these routes."""
        fixed = [{"route": route, "distribution": "fixed", "ms": ms} for route, ms in routes.items()]
        await self.tell("/_latency", {"routes": fixed})

    async def tell(self, path: str, content: dict[str, Any]) -> None:
        (await self.http.post(path, json=content)).raise_for_status()


@asynccontextmanager
async def open_world(place: Place, **environ: str) -> AsyncGenerator[World]:
    account_id, _ = await make_tenant(place.owner, ENTRIES_FEW)
    simulators = Simulators((str(place.folder), "http://127.0.0.1/auth/v1", "authenticated", "0"))
    address = await simulators.address()
    given = {
        **place.environ,
        "DATABASE_URL": place.addresses.owner,
        "OPENAI_API_KEY": "bench",
        "OPENAI_BASE_URL": f"{address}/openai/v1",
        "ANTHROPIC_API_KEY": "bench",
        "ANTHROPIC_BASE_URL": f"{address}/anthropic",
        "APIFY_TOKEN": "bench",
        "APIFY_API_URL": f"{address}/apify",
        **environ,
    }
    try:
        async with (
            build(read_runtime(given)) as application,
            httpx.AsyncClient(base_url=address, timeout=30) as http,
        ):
            yield World(application, http, CostOwner(account_id=AccountId(account_id)), given)
    finally:
        await simulators.close()
