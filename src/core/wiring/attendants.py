"""Background services that every worker runs concurrently with runs."""

from core.processes.background import BackgroundService
from core.wiring.inbox import inbox_attendants
from core.wiring.resources import Resources
from core.wiring.webhooks import courier_on


def attendants_on(foundation: Resources) -> dict[str, BackgroundService]:
    return {**inbox_attendants(foundation), "notices": courier_on(foundation).attend}
