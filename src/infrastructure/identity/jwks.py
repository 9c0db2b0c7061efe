"""Public keys of the token issuer, loaded from its JWKS URL and kept during rotations and outages."""

import asyncio
import time
from collections.abc import Callable

import httpx
import structlog

from features.auth.domain.errors import IdentityUnavailable
from infrastructure.identity.keys import Key, Keys, KeySetInvalid, PublicKeyAlgorithm, read_jwks
from infrastructure.tls import default_ssl_context

FRESH_S = 600.0
COOLDOWN_S = 10.0  # between two fetches, regardless of the tokens
TIMEOUT_S = 5.0
DOCUMENT_BYTES_MAX = 65_536
HTTP_OK = 200

log: structlog.stdlib.BoundLogger = structlog.get_logger("identity")


class JwksKeys(Keys):
    """Cache of the issuer's keys. All callers share one fetch.

    Fresh keys are found without waiting. Stale keys are refreshed in the background and stay in use while the
    issuer does not respond. A key that is missing in a newly loaded document is no longer accepted.
    """

    def __init__(
        self,
        url: str,
        algorithm: PublicKeyAlgorithm,
        *,
        fresh_s: float = FRESH_S,
        cooldown_s: float = COOLDOWN_S,
        timeout_s: float = TIMEOUT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._algorithm: PublicKeyAlgorithm = algorithm
        self._fresh_s = fresh_s
        self._cooldown_s = cooldown_s
        self._timeout_s = timeout_s
        self._now_s = now_s
        self._keys: dict[str | None, Key] = {}
        self._fresh_until_s = float("-inf")
        self._not_before_s = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._client: httpx.AsyncClient | None = None
        self.generation = 0
        self.failure: str | None = None  # reason of the last failed fetch, for the health check

    async def find(self, kid: str | None) -> Key | None:
        if not self._keys:
            await self._refresh()
        elif self._now_s() >= self._fresh_until_s:
            self._start_refresh()
        if self._named(kid) is None and kid is not None:
            await self._refresh()  # the issuer may have a new key
        if not self._keys:
            raise IdentityUnavailable
        return self._named(kid)

    async def count(self) -> int:
        """Return the number of keys in use; loads them first if there are none."""
        if not self._keys:
            await self._refresh()
        return len(self._keys)

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait({self._fetching})
        if self._client is not None:
            await self._client.aclose()

    def _named(self, kid: str | None) -> Key | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def _refresh(self) -> None:
        """Wait for a new fetch or the current one; returns at once during the cooldown."""
        if fetching := self._start_refresh():
            await asyncio.wait({fetching})  # a cancelled caller does not cancel the shared fetch

    def _start_refresh(self) -> asyncio.Task[None] | None:
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._now_s() < self._not_before_s:
            return None
        self._fetching = asyncio.create_task(self._load())
        return self._fetching

    async def _load(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                self._take(read_jwks(await self._fetch(), self._algorithm))
        except Exception as error:  # noqa: BLE001  after any error the loaded keys stay in use
            # Only the type of an external error, because its text can contain anything.
            self._failed(str(error) if isinstance(error, KeySetInvalid) else type(error).__name__)
        finally:
            self._not_before_s = self._now_s() + self._cooldown_s

    async def _fetch(self) -> bytes:
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=default_ssl_context(), timeout=self._timeout_s, follow_redirects=False
            )
        document = bytearray()
        # Without compression, because a small response could expand to a large document.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._client.stream("GET", self._url, headers=headers) as response:
            if response.status_code != HTTP_OK:
                raise KeySetInvalid(f"status {response.status_code}")
            async for chunk in response.aiter_raw():
                document += chunk
                if len(document) > DOCUMENT_BYTES_MAX:
                    raise KeySetInvalid("the document is too large")
        return bytes(document)

    def _take(self, keys: dict[str | None, Key]) -> None:
        if any(keys.get(kid) != key for kid, key in self._keys.items()):
            self.generation += 1
            log.warning("signing_key_removed", keys=len(keys))
        self._keys = keys
        self._fresh_until_s = self._now_s() + self._fresh_s
        if not keys:
            self._failed(f"no {self._algorithm} key in the document")
        elif self.failure:
            log.info("signing_keys_loaded_again", keys=len(keys))
            self.failure = None

    def _failed(self, reason: str) -> None:
        if self.failure is None:  # once per outage
            log.warning("signing_keys_not_loaded", reason=reason, serving=len(self._keys))
        self.failure = reason
