"""Anthropic's own client. Importing this takes seconds: do it late."""

import httpx2
from anthropic import AsyncAnthropic

from infrastructure.ai.providers.clients import SdkClient, SdkReply
from infrastructure.ai.providers.transport import http_client, reply_to, timeouts
from infrastructure.provider_endpoint import ProviderEndpoint


class AnthropicClient(SdkClient):
    """Posts bytes and gets bytes, as that of OpenAI does. The SDK's typed method would also warn of models
    that it thinks old, and refuse long answers unless a timeout is given; ours always is.
    """

    def __init__(self, url: str, access: ProviderEndpoint) -> None:
        self._is_simulated = access.is_simulated
        self._sdk = AsyncAnthropic(
            api_key=access.key,
            base_url=url or None,
            max_retries=0,
            http_client=http_client(),
            open_telemetry=False,  # our own record of calls says as much, and never a prompt
        )

    async def post(self, path: str, body: bytes, *, headers: dict[str, str], within_s: float) -> SdkReply:
        sent = self._sdk.post(
            path,
            cast_to=httpx2.Response,
            content=body,
            options={"headers": headers, "timeout": timeouts(within_s)},
        )
        return await reply_to(sent, is_simulated=self._is_simulated)

    async def close(self) -> None:
        await self._sdk.close()
