"""Requests to a provider through its SDK client, directly or via Cloudflare's gateway."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec

from infrastructure.ai.cloudflare import CloudflareGateway, is_cache_hit
from infrastructure.ai.providers.base import ProviderError
from infrastructure.provider_endpoint import ClientPerEndpoint, EndpointResolver, ProviderEndpoint


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


class Clients:
    """Sends requests through Cloudflare's gateway, unless ``resolve_endpoint`` returns a URL (for example
    of a simulator): that URL is used unchanged.
    """

    def __init__(
        self,
        resolve_endpoint: EndpointResolver,
        gateway: CloudflareGateway | None,
        *,
        provider: str,
        make: Callable[[str, ProviderEndpoint], SdkClient],
    ) -> None:
        self._resolve_endpoint = resolve_endpoint
        self._gateway = gateway
        self._provider = provider
        self._make_client = make
        self._clients = ClientPerEndpoint(self._create)

    async def post(
        self, path: str, body: bytes, *, gateway_headers: dict[str, str], deadline_s: float
    ) -> Received:
        """The deadline includes creating the client, connecting, and reading the body. Raises only
        ProviderError, without a context, because a context would contain the key and the prompt.
        """
        endpoint, was_sent = ProviderEndpoint("", ""), False
        try:
            async with asyncio.timeout(deadline_s) as deadline:
                endpoint = await self._resolve_endpoint()
                _check_key(endpoint)
                async with self._clients.borrow(endpoint) as client:
                    was_sent = True
                    within_s = (deadline.when() or 0.0) - asyncio.get_running_loop().time()
                    headers = gateway_headers if self._is_through_gateway(endpoint) else {}
                    reply = await client.post(path, body, headers=headers, within_s=within_s)
        except ProviderError:
            raise
        except TimeoutError:
            failure = ProviderError(
                "timeout", was_sent=was_sent, is_simulated=endpoint.is_simulated, detail="deadline"
            )
        except Exception as error:  # noqa: BLE001  from the endpoint resolver or the client factory
            failure = ProviderError(
                "unavailable",
                was_sent=was_sent,
                is_simulated=endpoint.is_simulated,
                detail=type(error).__name__,
            )
        else:
            return self._received(endpoint, reply)
        raise failure

    async def prepare(self) -> None:
        """Never fails. Called at startup, it saves the first prompt the time of the SDK import."""
        with suppress(Exception):
            endpoint = await self._resolve_endpoint()
            _check_key(endpoint)
            async with self._clients.borrow(endpoint):
                pass

    async def close(self) -> None:
        await self._clients.close()

    def _is_through_gateway(self, endpoint: ProviderEndpoint) -> bool:
        return self._gateway is not None and not endpoint.url

    def _received(self, endpoint: ProviderEndpoint, reply: SdkReply) -> Received:
        headers: Mapping[str, str] = reply.headers if self._is_through_gateway(endpoint) else {}
        return Received(
            body=reply.body,
            is_simulated=endpoint.is_simulated,
            is_from_gateway=is_cache_hit(headers),
            gateway_log_id=headers.get("cf-aig-log-id"),
        )

    def _create(self, endpoint: ProviderEndpoint) -> SdkClient:
        url = self._gateway.url(self._provider) if self._gateway and not endpoint.url else endpoint.url
        return self._make_client(url, endpoint)


def _check_key(endpoint: ProviderEndpoint) -> None:
    if not endpoint.key or not endpoint.key.isascii() or not endpoint.key.isprintable():
        # httpx could not send such a key, or would quote it in the error.
        raise ProviderError(
            "unauthorised", was_sent=False, is_simulated=endpoint.is_simulated, detail="no usable key"
        )
