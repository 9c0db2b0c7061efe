"""Application with all simulated providers; each has its own module and router."""

from collections.abc import Coroutine
from pathlib import Path

from litestar import Litestar
from litestar.datastructures import State
from litestar.types import ASGIApp, Receive, Scope, Send

from infrastructure.identity.tokens import LocalIssuer
from simulators.ai import cloudflare
from simulators.ai.anthropic import anthropic_router
from simulators.ai.cloudflare import CloudflareGateway
from simulators.ai.openai import openai_router
from simulators.ai.prompt_cache import PromptCache
from simulators.control import control_router
from simulators.faults.faults import Faults, faults_router
from simulators.faults.latency import Latencies, latency_router
from simulators.faults.middleware import FaultMiddleware, RequestCounter
from simulators.instagram.apify import apify_router
from simulators.instagram.apify_runs import ActorRuns
from simulators.instagram.scraper_api import scraper_api_router
from simulators.stripe.app import StripeSimulator
from simulators.supabase import Outbox, SupabaseAuth, supabase_router

OUTBOX = "outbox.jsonl"
STRIPE = "simulated-stripe.sqlite"


def create_simulators(
    data_dir: Path, issuer: LocalIssuer, *, latency_scale: float = 0.0
) -> tuple[ASGIApp, Coroutine[None, None, None]]:
    """Returns the application and the background task that must run while it is served."""
    stripe = StripeSimulator(data_dir / STRIPE)
    faults, requests, latencies = Faults(), RequestCounter(), Latencies(latency_scale)
    state = State(
        {
            "faults": faults,
            "latencies": latencies,
            "requests": requests,
            "prompt_cache": PromptCache(),
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
        logging_config=None,  # Litestar's default would replace the logging of the process
    )
    providers = FaultMiddleware(app, faults, latencies, requests)
    # The gateway calls the providers like any client, and has faults of its own.
    app.state.gateway = gateway = CloudflareGateway(providers)
    through_gateway = FaultMiddleware(gateway, faults, latencies, requests)

    async def simulators(scope: Scope, receive: Receive, send: Send) -> None:
        is_gateway = scope["type"] == "http" and scope["path"].startswith(cloudflare.PATH)
        await (through_gateway if is_gateway else providers)(scope, receive, send)

    return simulators, stripe.delivery_worker.run()
