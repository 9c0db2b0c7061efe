"""Storm of Stripe events: five copies of each, in random order, while the receiving processes are killed."""

import asyncio
import itertools
import random
import time
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import msgspec
from place import PROJECT, BenchFailed, Place
from processes import BENCH, HOST, OURS, oslira_on
from rounds import Pair, Round
from tenants import make_tenant, settle
from webhook_rows import CONNECTIONS, RATE_DEMANDED, send, signature_of

from shared.listen_socket import free_port

EVENTS = 2_000
COPIES = 5
ACCOUNTS = 20
KILLS = EVENTS // 100
SEED = 6
APPLIED = "select count(*) from webhook_events where status = 'applied'"
BOUGHT = (
    "select coalesce(sum(credits_delta), 0)::bigint from credit_entries where transaction_type = 'purchase'"
)
APPLY_TIMEOUT_S = 300
POLL_INTERVAL_S = 0.1


@asynccontextmanager
async def storm_and_what_is_demanded(place: Place) -> AsyncGenerator[Round]:
    """Two processes receive and one applies. For every hundred events one of them is killed with SIGKILL and
    restarted; a fourth of the kills hit the receivers.
    """
    accounts = [(await make_tenant(place.owner, 1))[0] for _ in range(ACCOUNTS)]
    await settle(place.owner)

    async def measure_round(_seconds: int) -> Pair:
        before = await place.owner.fetchval(BOUGHT)
        chance = random.Random(SEED)
        credits_bought = [chance.randint(1, 9) for _ in range(EVENTS)]
        deliveries = [purchase_of(chance.choice(accounts), amount) for amount in credits_bought] * COPIES
        chance.shuffle(deliveries)
        rate = await _storm(place, deliveries)
        if await place.owner.fetchval(BOUGHT) != before + sum(credits_bought):
            raise BenchFailed("The accounts have other credits than were bought.")
        await place.owner.execute("truncate public.webhook_events")
        return Pair(subject=rate, floor=RATE_DEMANDED)

    yield measure_round


def purchase_of(account_id: uuid.UUID, credits_bought: int) -> bytes:
    """Same format as tests.system.stripe_events.storm_world, which reads everything from the session's id."""
    session = {
        "id": f"cs_{account_id.hex}_{credits_bought}_{uuid.uuid4().hex}",
        "object": "checkout.session",
    }
    return msgspec.json.encode(
        {
            "id": f"evt_{uuid.uuid4().hex}",
            "object": "event",
            "api_version": "2026-10-28.endive",
            "created": int(time.time()),
            "type": "checkout.session.completed",
            "data": {"object": session},
        }
    )


async def _storm(place: Place, deliveries: list[bytes]) -> float:
    """Returns the events received per second, until the last event was received and the last kill done."""
    ports = [free_port(HOST, 0), free_port(HOST, 0)]
    servers = [Server(place, port) for port in ports]
    async with _consumers(place) as consumers, asyncio.TaskGroup() as tasks:
        lives = [tasks.create_task(server.live_and_die()) for server in servers]
        for server in servers:
            await server.is_up.wait()
        started_at = time.perf_counter()
        victims = itertools.cycle([servers[0], *[consumers] * 3, servers[1], *[consumers] * 3])
        await _deliver(deliveries, ports, victims)
        for victim in (*servers, consumers):
            await victim.all_killed()
        rate = len(deliveries) / (time.perf_counter() - started_at)
        async with asyncio.timeout(APPLY_TIMEOUT_S):
            while await place.owner.fetchval(APPLIED) < EVENTS:  # noqa: ASYNC110  another process applies them
                await asyncio.sleep(POLL_INTERVAL_S)
        for life in lives:
            life.cancel()
    return rate


Stream = TypeVar("Stream", asyncio.StreamReader, asyncio.StreamWriter)


class Victim(Protocol):
    def kill(self) -> None: ...

    async def all_killed(self) -> None:
        """Waits until every requested kill has been executed."""
        ...


class Server(Victim):
    """Killed on request as soon as it is running, and restarted."""

    def __init__(self, place: Place, port: int) -> None:
        self.is_up = asyncio.Event()
        self._place = place
        self._port = port
        self._orders = asyncio.Queue[None]()

    def kill(self) -> None:
        self._orders.put_nowait(None)

    async def all_killed(self) -> None:
        await self._orders.join()

    async def live_and_die(self) -> None:
        while True:
            async with oslira_on(self._place, self._port) as server:
                self.is_up.set()
                await self._orders.get()
                server.process.kill()
                self._orders.task_done()


class Consumers(Victim):
    """Consumers of which one is active at a time; see consumers.py."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._orders_count = 0

    def kill(self) -> None:
        self._orders_count += 1
        _stream(self._process.stdin).write(b"\n")

    async def all_killed(self) -> None:
        while self._orders_count:
            line = await _stream(self._process.stdout).readline()
            self._orders_count -= line == b"killed\n"


def _stream(stream: Stream | None) -> Stream:
    assert stream is not None
    return stream


@asynccontextmanager
async def _consumers(place: Place) -> AsyncGenerator[Consumers]:
    process = await asyncio.create_subprocess_exec(
        *(OURS, BENCH / "consumers.py", place.addresses.admin),
        stdin=PIPE,
        stdout=PIPE,
        env={**place.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"},
    )
    try:
        await _stream(process.stdout).readline()
        yield Consumers(process)
    finally:
        _stream(process.stdin).close()
        await process.wait()


async def _deliver(deliveries: list[bytes], ports: list[int], victims: Iterator[Victim]) -> None:
    waiting = iter(enumerate(deliveries))

    async def keep_sending(number: int) -> None:
        attempts = itertools.count(number)
        connection = None
        for count, body in waiting:
            if count % (len(deliveries) // KILLS) == 0:
                next(victims).kill()
            while True:
                try:
                    connection = connection or await asyncio.open_connection(HOST, ports[next(attempts) % 2])
                    await send(*connection, body, signature_of(body))
                    break
                except (OSError, EOFError):  # this server was killed: try the other one
                    connection = None

    async with asyncio.TaskGroup() as tasks:
        for number in range(CONNECTIONS):
            tasks.create_task(keep_sending(number))
