"""Receipt of Stripe events (signature, event and queue entry), against an insert of the same bytes."""

import asyncio
import hmac
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from place import BenchFailed, Place
from processes import oslira
from rounds import TASKS, Pair, Round, calls_per_s
from tenants import open_database, settle

from core.settings.payments import LOCAL_SECRET
from features.billing.application.stripe_events.receive import StripeEventReceiver
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from infrastructure.database.pool import open_pool

PATH = "/v1/webhooks/stripe"
CONNECTIONS = 32
RATE_DEMANDED = 500.0
# As long as a typical invoice event. Its id is replaced for each request.
TEMPLATE = (Path(__file__).parent / "invoice_event.json").read_bytes()
BARE_TABLE = "create table if not exists public.bare_events (id text primary key, payload bytea not null)"
BARE = "insert into public.bare_events values ($1, $2) on conflict do nothing"


def new_event() -> tuple[str, bytes, bytes]:
    """Returns the id, the event, and Stripe's signature."""
    event_id = f"evt_{uuid.uuid4().hex}"
    body = TEMPLATE.replace(b"evt_template", event_id.encode())
    return event_id, body, signature_of(body)


def signature_of(body: bytes) -> bytes:
    signed_at = int(time.time())
    digest = hmac.digest(LOCAL_SECRET.encode(), b"%d." % signed_at + body, "sha256").hex()
    return f"t={signed_at},v1={digest}".encode()


@asynccontextmanager
async def intake_and_bare_insert(place: Place) -> AsyncGenerator[Round]:
    """The same concurrency and number of connections; both sides create and sign each event."""
    await place.owner.execute(BARE_TABLE)
    await settle(place.owner)

    async def owner_url() -> str:
        return place.addresses.owner

    async def secrets() -> tuple[str, ...]:
        return (LOCAL_SECRET,)

    async with (
        open_database(place) as database,
        open_pool(owner_url, size_max=TASKS, statement_cache=True) as pool,
    ):
        intake = StripeEventReceiver(PostgresStripeEvents(database), secrets, time.time, int)

        async def receive() -> None:
            _, body, signature = new_event()
            assert await intake.receive(body, signature)

        async def insert() -> None:
            event_id, body, _ = new_event()
            connection = await pool.acquire()
            try:
                await connection.execute(BARE, event_id, body)
            finally:
                pool.release(connection)

        async def measure_round(seconds: int) -> Pair:
            pair = Pair(subject=await calls_per_s(receive, seconds), floor=await calls_per_s(insert, seconds))
            await place.owner.execute("truncate public.webhook_events, public.bare_events")
            return pair

        yield measure_round


@asynccontextmanager
async def events_and_what_is_demanded(place: Place) -> AsyncGenerator[Round]:
    """Over HTTP, to one API process, without a consumer."""
    async with oslira(place) as address:

        async def measure_round(seconds: int) -> Pair:
            rate = await _sent_per_s(address, seconds)
            await place.owner.execute("truncate public.webhook_events")
            return Pair(subject=rate, floor=RATE_DEMANDED)

        yield measure_round


async def _sent_per_s(address: str, seconds: int) -> float:
    """Writes requests directly, because an HTTP client's own cost would dominate."""
    counts = [0] * CONNECTIONS
    started_at = time.perf_counter()

    async def keep_sending(number: int) -> None:
        host, port = urlsplit(address).hostname, urlsplit(address).port
        reader, writer = await asyncio.open_connection(host, port)
        try:
            while time.perf_counter() < started_at + seconds:
                _, body, signature = new_event()
                await send(reader, writer, body, signature)
                counts[number] += 1
        finally:
            writer.close()
            await writer.wait_closed()

    async with asyncio.TaskGroup() as tasks:
        for number in range(CONNECTIONS):
            tasks.create_task(keep_sending(number))
    return sum(counts) / (time.perf_counter() - started_at)


async def send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes, signature: bytes
) -> None:
    head = (
        b"POST %s HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\nstripe-signature: %s\r\n"
        b"content-length: %d\r\n\r\n" % (PATH.encode(), signature, len(body))
    )
    writer.write(head + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    content = await reader.readexactly(length)
    if not answer.startswith(b"http/1.1 200"):
        raise BenchFailed(f"An event was answered with {content.decode(errors='replace')}")
