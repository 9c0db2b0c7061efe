"""Lazily created SDK client, replaced when its URL or key changes."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway, is_cache_hit
from infrastructure.ai.providers.base import ProviderError
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint


class SdkReply(NamedTuple):
    body: bytes
    headers: Mapping[str, str]


class SdkClient(Protocol):
    """Raises only ProviderError."""

    async def post(self, path: str, body: bytes, *, headers: dict[str, str], within_s: float) -> SdkReply: ...

    async def close(self) -> None: ...


class Received(msgspec.Struct, frozen=True, kw_only=True):
    body: bytes
    is_simulated: bool
    is_from_gateway: bool
    gateway_log_id: str | None


@dataclass(slots=True)
class _Made:
    access: ProviderEndpoint
    client: SdkClient
    calls_count: int = 0
    is_retired: bool = False

    async def close_when_idle(self) -> None:
        if self.is_retired and not self.calls_count:
            await self.client.close()


class Clients:
    """Sends requests through Cloudflare's gateway, unless ``where`` returns a URL (for example of a
    simulator): that URL is used unchanged.
    """

    def __init__(
        self,
        where: EndpointResolver,
        gateway: CloudflareGateway | None,
        *,
        provider: str,
        make: Callable[[str, ProviderEndpoint], SdkClient],
    ) -> None:
        self._where = where
        self._gateway = gateway
        self._provider = provider
        self._make_client = make
        self._made: _Made | None = None
        self._making = asyncio.Lock()

    async def post(
        self, path: str, body: bytes, *, gateway_headers: dict[str, str], deadline_s: float
    ) -> Received:
        """The deadline includes creating the client, connecting, and reading the body. Raises only
        ProviderError, without a context, because a context would contain the key and the prompt.
        """
        access, is_under_way = ProviderEndpoint("", ""), False
        try:
            async with asyncio.timeout(deadline_s) as deadline:
                access = await self._where()
                async with self._borrowed(access) as client:
                    is_under_way = True
                    within_s = (deadline.when() or 0.0) - asyncio.get_running_loop().time()
                    headers = gateway_headers if self._is_through_gateway(access) else {}
                    reply = await client.post(path, body, headers=headers, within_s=within_s)
        except ProviderError:
            raise
        except TimeoutError:
            trouble = ProviderError(
                "timeout", was_sent=is_under_way, is_simulated=access.is_simulated, detail="deadline"
            )
        except Exception as error:  # noqa: BLE001  from the endpoint resolver or the client factory
            trouble = ProviderError(
                "unavailable",
                was_sent=is_under_way,
                is_simulated=access.is_simulated,
                detail=type(error).__name__,
            )
        else:
            return self._received(access, reply)
        raise trouble

    async def prepare(self) -> None:
        """Never fails. Called at startup, it saves the first prompt the time of the SDK import."""
        with suppress(Exception):
            async with self._borrowed(await self._where()):
                pass

    async def close(self) -> None:
        if self._made is not None:
            made, self._made = self._made, None
            await made.client.close()

    def _is_through_gateway(self, access: ProviderEndpoint) -> bool:
        return self._gateway is not None and not access.url

    def _received(self, access: ProviderEndpoint, reply: SdkReply) -> Received:
        headers: Mapping[str, str] = reply.headers if self._is_through_gateway(access) else {}
        return Received(
            body=reply.body,
            is_simulated=access.is_simulated,
            is_from_gateway=is_cache_hit(headers),
            gateway_log_id=headers.get("cf-aig-log-id"),
        )

    @asynccontextmanager
    async def _borrowed(self, access: ProviderEndpoint) -> AsyncGenerator[SdkClient]:
        made = self._made
        if made is None or made.access != access:
            made = await self._make(access)
        made.calls_count += 1
        try:
            yield made.client
        finally:
            made.calls_count -= 1
            await made.close_when_idle()

    async def _make(self, access: ProviderEndpoint) -> _Made:
        if not access.key or not access.key.isascii() or not access.key.isprintable():
            # httpx could not send such a key, or would quote it in the error.
            raise ProviderError(
                "unauthorised", was_sent=False, is_simulated=access.is_simulated, detail="no usable key"
            )
        async with self._making:
            if self._made is not None and self._made.access == access:
                return self._made
            url = self._gateway.url(self._provider) if self._gateway and not access.url else access.url
            # In a thread, because importing an SDK and reading the CA bundle take seconds.
            client = await asyncio.to_thread(self._make_client, url, access)
            old, made = self._made, _Made(access, client)
            self._made = made
            if old is not None:
                old.is_retired = True
                await old.close_when_idle()
            return made
