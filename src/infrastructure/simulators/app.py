"""Every simulated provider in one application; each has a module and a router of its own."""

from pathlib import Path

from litestar import Litestar
from litestar.datastructures import State
from litestar.types import ASGIApp

from infrastructure.identity.tokens import LocalIssuer
from infrastructure.simulators.faults import Faults, FaultyAnswers, set_fault
from infrastructure.simulators.outbox import Outbox
from infrastructure.simulators.supabase import SupabaseAuth, supabase_router

OUTBOX = "outbox.jsonl"


def create_simulators(data_dir: Path, issuer: LocalIssuer) -> ASGIApp:
    faults = Faults()
    supabase = SupabaseAuth(issuer, Outbox(data_dir / OUTBOX))
    app = Litestar(
        route_handlers=[set_fault, supabase_router()],
        state=State({"faults": faults, "supabase": supabase}),
        openapi_config=None,
        logging_config=None,  # it would replace what the process has configured
    )
    return FaultyAnswers(app, faults)
