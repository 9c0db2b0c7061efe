import asyncio

from core.processes.background import run_services
from shared.errors import Unavailable


class Away(Unavailable):
    code = "away"
    text = "Not available."


async def test_failed_service_is_restarted_and_services_run_until_stopped(monkeypatch):
    monkeypatch.setattr("core.processes.background.RETRY_INTERVAL_S", 0.0)
    stopping = asyncio.Event()
    events: list[str] = []

    async def steady(stopping: asyncio.Event) -> None:
        events.append("steady")
        await stopping.wait()
        events.append("steady ends")

    async def fails_twice(stopping: asyncio.Event) -> None:
        events.append("fails")
        match events.count("fails"):
            case 1:
                raise Away
            case 2:
                raise RuntimeError
            case _:
                stopping.set()

    await run_services({"steady": steady, "fails": fails_twice}, stopping)

    assert events == ["steady", "fails", "fails", "fails", "steady ends"]
