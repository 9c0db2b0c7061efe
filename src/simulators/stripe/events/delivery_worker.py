"""Delivery of signed events to webhook endpoints, with retries until they are accepted."""

import asyncio
import hashlib
import hmac
import sqlite3
import time
from contextlib import suppress

import httpx
import msgspec
import structlog

from simulators.faults.json_access import Document
from simulators.stripe.events.endpoints import SECRET
from simulators.stripe.events.events import told
from simulators.stripe.objects.renewals import catch_up
from simulators.stripe.store import Store

AT_ONCE_MAX = 8
LOOK_AGAIN_S = 0.5
TIMEOUT_S = 20.0
CLAIM_S = 30.0  # then another process may retry; longer than a call takes
RETRY_S, RETRY_S_MAX = 1.0, 60.0
ATTEMPTS_MAX = 30
CLAIM = """
update deliveries set due_s = ?, attempts = attempts + 1
where id in (select id from deliveries where status = 'pending' and due_s <= ? order by due_s, id limit ?)
returning id, event, endpoint, attempts
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger("stripe")


def signature(body: bytes, secrets: list[str], at: int) -> str:
    """Signs with real time, not Stripe's simulated clock, because receivers compare it with their own."""
    made = [hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={at}", *(f"v1={value}" for value in made)])


class EventDeliveryWorker:
    """One per process; each delivery is claimed by one of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._news = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        self._news.set()

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause_s()):  # wait_for can lose a cancellation
                        await self._news.wait()
                self._news.clear()
                try:
                    if self._store.exists:
                        self._take_up(http)
                except sqlite3.OperationalError as error:
                    log.warning("deliveries_not_taken_up", reason=str(error))
                    await asyncio.sleep(LOOK_AGAIN_S)

    def _pause_s(self) -> float:
        """Limited, because other processes may have stored new deliveries meanwhile."""
        if not self._store.exists or not self._free():
            return LOOK_AGAIN_S
        next_s = "select min(due_s) from deliveries where status = 'pending'"
        (due_s,) = self._store.database.execute(next_s).fetchone()
        return LOOK_AGAIN_S if due_s is None else min(max(due_s - time.time(), 0.0), LOOK_AGAIN_S)

    def _take_up(self, http: httpx.AsyncClient) -> None:
        free, now = self._free(), time.time()
        if not self._has_work(now):
            return
        with self._store.transaction():
            catch_up(self._store)
            claimed = self._store.database.execute(CLAIM, (now + CLAIM_S, now, free)).fetchall()
        for row in claimed:
            task = asyncio.create_task(self._deliver(http, dict(row)))
            self._under_way.add(task)
            task.add_done_callback(self._ended)

    def _free(self) -> int:
        """Returns the number of free slots; a limit of 1 keeps the order."""
        return max(self._store.setting("at_once", AT_ONCE_MAX) - len(self._under_way), 0)

    def _has_work(self, now: float) -> bool:
        """Reads without the write lock, which other processes need."""
        waiting = "select 1 from deliveries where status = 'pending' and due_s <= ? limit 1"
        return (
            self._store.database.execute(waiting, (now,)).fetchone() is not None
            or self._store.due(self._store.now()) is not None
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self.wake()

    async def _deliver(self, http: httpx.AsyncClient, delivery: Document) -> None:
        event, endpoint = self._store.find(delivery["event"]), self._store.find(delivery["endpoint"])
        if event is None or endpoint is None:
            self._note(delivery, "dropped", None)
            return
        body = msgspec.json.encode(told(event, endpoint["api_version"]))
        secrets = self._store.setting("signing_secrets", [SECRET])
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, secrets, int(time.time())),
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        }
        try:
            answer = await http.post(endpoint["url"], content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL):
            self._note(delivery, "pending", None)
        else:
            self._note(delivery, "delivered" if answer.is_success else "pending", answer.status_code)

    def _note(self, delivery: Document, status: str, answer: int | None) -> None:
        attempts = delivery["attempts"]
        if status == "pending" and attempts >= ATTEMPTS_MAX:
            status = "failed"
        base_s = self._store.setting("retry_s", RETRY_S)
        due_s = time.time() + min(base_s * 2 ** (attempts - 1), RETRY_S_MAX)
        self._store.database.execute(
            "update deliveries set status = ?, answer = ?, due_s = ? where id = ? and status = 'pending'",
            (status, answer, due_s, delivery["id"]),
        )
        if status != "delivered":
            log.info("event_not_taken", event_id=delivery["event"], attempts=attempts, answer=answer)
