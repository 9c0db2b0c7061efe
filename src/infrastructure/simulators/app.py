"""Every simulated provider in one application; each has a module and a router of its own."""

from collections.abc import Coroutine
from pathlib import Path

from litestar import Litestar
from litestar.datastructures import State
from litestar.types import ASGIApp, Receive, Scope, Send

from infrastructure.identity.tokens import LocalIssuer
from infrastructure.simulators import cloudflare
from infrastructure.simulators.anthropic import anthropic_router
from infrastructure.simulators.apify import apify_router
from infrastructure.simulators.apify_runs import ActorRuns
from infrastructure.simulators.bad_days import BadDays
from infrastructure.simulators.cloudflare import CloudflareGateway
from infrastructure.simulators.control import control_router
from infrastructure.simulators.faults import Faults, faults_router
from infrastructure.simulators.latency import Latencies, latency_router
from infrastructure.simulators.openai import openai_router
from infrastructure.simulators.outbox import Outbox
from infrastructure.simulators.prompt_memory import PromptMemory
from infrastructure.simulators.requests import Requests
from infrastructure.simulators.scraper_api import scraper_api_router
from infrastructure.simulators.stripe.simulator import StripeSimulator
from infrastructure.simulators.supabase import SupabaseAuth, supabase_router

OUTBOX = "outbox.jsonl"
STRIPE = "simulated-stripe.sqlite"


def create_simulators(
    data_dir: Path, issuer: LocalIssuer, *, latency_scale: float = 0.0
) -> tuple[ASGIApp, Coroutine[None, None, None]]:
    """And what goes on beside it, by itself, for as long as it is served."""
    stripe = StripeSimulator(data_dir / STRIPE)
    faults, requests, latencies = Faults(), Requests(), Latencies(latency_scale)
    state = State(
        {
            "faults": faults,
            "latencies": latencies,
            "requests": requests,
            "prompt_memory": PromptMemory(),
            "runs": ActorRuns(latencies),
            "stripe": stripe,
            "supabase": SupabaseAuth(issuer, Outbox(data_dir / OUTBOX)),
        }
    )
    app = Litestar(
        route_handlers=[
            *(faults_router(), latency_router(), control_router()),
            *(openai_router(), anthropic_router(), apify_router(), scraper_api_router(), supabase_router()),
            *stripe.routers(),
        ],
        state=state,
        openapi_config=None,
        logging_config=None,  # it would replace what the process has configured
    )
    providers = BadDays(app, faults, latencies, requests)
    # The gateway asks the providers as anybody does, and has bad days of its own.
    app.state.gateway = gateway = CloudflareGateway(providers)
    through_gateway = BadDays(gateway, faults, latencies, requests)

    async def simulators(scope: Scope, receive: Receive, send: Send) -> None:
        is_gateway = scope["type"] == "http" and scope["path"].startswith(cloudflare.PATH)
        await (through_gateway if is_gateway else providers)(scope, receive, send)

    return simulators, stripe.courier.run()
