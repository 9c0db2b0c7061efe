"""Connection that only listens, reconnects by itself, and reports when it is disconnected."""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import asyncpg
import structlog

from infrastructure.database.pool import Borrowed, Url

CONNECT_TIMEOUT_S = 5.0
# A caller whose access ended must be rejected within five seconds, even if the connection hangs.
BEAT_INTERVAL_S = 2.0
BEAT_TIMEOUT_S = 2.0
RETRY_S = 0.5
APPLICATION_NAME = "oslira-listener"

_FAILURES = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a query on a connection that the server is closing
)

Hear = Callable[[str, str], None]
"""Receives the channel and the message."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("listener")


class Listener:
    """``hear_state`` receives True once no message can be missed, and False when that ends."""

    def __init__(
        self, url: Url, channels: Sequence[str], *, hear: Hear, hear_state: Callable[[bool], None]
    ) -> None:
        self._url = url
        self._channels = channels
        self._hear = hear
        self._hear_state = hear_state

    async def listen(self) -> None:
        """Listens until cancelled."""
        while True:
            reason = "closed"
            try:
                await self._listen_once()
            except _FAILURES as error:
                reason = type(error).__name__
            log.warning("listener_lost", reason=reason)
            await asyncio.sleep(RETRY_S)

    async def _listen_once(self) -> None:
        connection: Borrowed = await asyncpg.connect(
            await self._url(),
            timeout=CONNECT_TIMEOUT_S,
            server_settings={"application_name": APPLICATION_NAME},
        )
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            for channel in self._channels:
                await connection.add_listener(channel, self._on_message)
            self._hear_state(True)
            await self._beat(connection, lost)
        finally:
            self._hear_state(False)
            connection.terminate()

    async def _beat(self, connection: Borrowed, lost: asyncio.Event) -> None:
        """Sends heartbeats until the connection is lost, which also detects a connection that hangs."""
        while not lost.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_INTERVAL_S):
                    await lost.wait()
                    return
            await connection.execute("select 1", timeout=BEAT_TIMEOUT_S)

    def _on_message(self, connection: Any, pid: int, channel: str, payload: object) -> None:  # noqa: ANN401  asyncpg's own
        del connection, pid
        self._hear(channel, str(payload))
