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

from simulators.faults.provider_requests import Document
from simulators.stripe.events.events import SECRET
from simulators.stripe.http.api import public
from simulators.stripe.objects.renewals import run_due
from simulators.stripe.store import Store

CONCURRENCY_MAX = 8
POLL_INTERVAL_S = 0.5
TIMEOUT_S = 20.0
CLAIM_S = 30.0  # then another process may retry; longer than a call takes
RETRY_DELAY_S, RETRY_DELAY_S_MAX = 1.0, 60.0
ATTEMPTS_MAX = 30
CLAIM = """
update deliveries set due_s = ?, attempts = attempts + 1
where id in (select id from deliveries where status = 'pending' and due_s <= ? order by due_s, id limit ?)
returning id, event, endpoint, attempts
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger("stripe")


def signature(body: bytes, at: int) -> str:
    """Signs with real time, not Stripe's simulated clock, because receivers compare it with their own."""
    digest = hmac.new(SECRET.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class EventDeliveryWorker:
    """One per process; each delivery is claimed by one of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause_s()):  # wait_for can lose a cancellation
                        await self._woken.wait()
                self._woken.clear()
                try:
                    if self._store.exists:
                        self._start_due(http)
                except sqlite3.OperationalError as error:
                    log.warning("deliveries_not_claimed", reason=str(error))
                    await asyncio.sleep(POLL_INTERVAL_S)

    def _pause_s(self) -> float:
        """Limited, because other processes may have stored new deliveries meanwhile."""
        if not self._store.exists or not self._free_slots():
            return POLL_INTERVAL_S
        next_s = "select min(due_s) from deliveries where status = 'pending'"
        (due_s,) = self._store.database.execute(next_s).fetchone()
        return POLL_INTERVAL_S if due_s is None else min(max(due_s - time.time(), 0.0), POLL_INTERVAL_S)

    def _start_due(self, http: httpx.AsyncClient) -> None:
        now = time.time()
        if not self._has_work(now):
            return
        with self._store.transaction():
            run_due(self._store)
            claimed = self._store.database.execute(CLAIM, (now + CLAIM_S, now, self._free_slots())).fetchall()
        for row in claimed:
            task = asyncio.create_task(self._deliver(http, dict(row)))
            self._tasks.add(task)
            task.add_done_callback(self._on_done)

    def _free_slots(self) -> int:
        return max(CONCURRENCY_MAX - len(self._tasks), 0)

    def _has_work(self, now: float) -> bool:
        """Reads without the write lock, which other processes need."""
        waiting = "select 1 from deliveries where status = 'pending' and due_s <= ? limit 1"
        has_delivery = self._store.database.execute(waiting, (now,)).fetchone() is not None
        return has_delivery or self._store.find_due() is not None

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake()

    async def _deliver(self, http: httpx.AsyncClient, delivery: Document) -> None:
        event, endpoint = self._store.find(delivery["event"]), self._store.find(delivery["endpoint"])
        if event is None or endpoint is None:
            self._record(delivery, "dropped", None)
            return
        body = msgspec.json.encode(public(event))
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, int(time.time())),
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        }
        try:
            response = await http.post(endpoint["url"], content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL):
            self._record(delivery, "pending", None)
        else:
            self._record(delivery, "delivered" if response.is_success else "pending", response.status_code)

    def _record(self, delivery: Document, status: str, response_status: int | None) -> None:
        attempts = delivery["attempts"]
        if status == "pending" and attempts >= ATTEMPTS_MAX:
            status = "failed"
        due_s = time.time() + min(RETRY_DELAY_S * 2 ** (attempts - 1), RETRY_DELAY_S_MAX)
        self._store.database.execute(
            "update deliveries set status = ?, response_status = ?, due_s = ?"
            " where id = ? and status = 'pending'",
            (status, response_status, due_s, delivery["id"]),
        )
        if status != "delivered":
            log.info(
                "event_not_accepted", event_id=delivery["event"], attempts=attempts, status=response_status
            )
