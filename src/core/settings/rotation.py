"""Settings whose secrets may be rotated in a secrets manager while the process runs."""

import asyncio
import time

from core.settings.settings import Lookup, Settings, read_settings

CACHED_FOR_S = 10.0


class RotatingSettings:
    """The settings, read again after CACHED_FOR_S. ``lookup`` is None if no secrets manager is configured."""

    def __init__(self, settings: Settings, lookup: Lookup | None) -> None:
        self._settings = settings
        self._lookup = lookup
        self._cached_until_s = time.monotonic() + CACHED_FOR_S

    async def current(self) -> Settings:
        if self._lookup is not None and time.monotonic() >= self._cached_until_s:
            self._cached_until_s = time.monotonic() + CACHED_FOR_S
            self._settings = await asyncio.to_thread(read_settings, self._lookup)
        return self._settings

    async def webhook_secrets(self) -> tuple[str, ...]:
        return (await self.current()).webhook_secrets
