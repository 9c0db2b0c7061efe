import asyncio
import itertools
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from infrastructure.database.clients import connect
from shared.caller import Caller
from shared.ids import AccountId

PORTS_EACH = 1_000
_PORTS = itertools.count(os.getpid())

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    caller: Caller

    @property
    def claims(self):
        return self.caller.claims


def claims_of(user_id):
    return msgspec.json.encode({"sub": str(user_id), "role": "authenticated"}).decode()


async def until(condition, *, timeout_s=30.0):
    """Waits for a condition, never for a fixed time. The condition may be async; returns its result."""
    async with asyncio.timeout(timeout_s):
        while True:
            result = condition()
            if asyncio.iscoroutine(result):
                result = await result
            if result:
                return result
            await asyncio.sleep(0.01)


async def register_worker(owner):
    """Registers a worker whose heartbeat never expires."""
    await owner.execute(
        "insert into traffic.workers (executor, host, queues, heartbeat_at)"
        " values ('worker', 'elsewhere', '{}', now() + interval '1 day')"
    )


def dual_client(addresses, *, pool_size=8, statement_cache=True):
    """The application's database client on these addresses."""

    async def user_url():
        return addresses.user

    async def admin_url():
        return addresses.admin

    return connect(
        user_url=user_url, admin_url=admin_url, pool_size=pool_size, statement_cache=statement_cache
    )


def free_port():
    """Returns a free port outside the system's ephemeral range and the ranges of parallel test processes."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = 10_000 + worker * PORTS_EACH + next(_PORTS) % PORTS_EACH
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
