"""Anthropic SDK client. Import it lazily: the import takes seconds."""

import httpx2
from anthropic import AsyncAnthropic

from infrastructure.ai.providers.clients import SdkClient, SdkReply
from infrastructure.ai.providers.transport import http_client, reply_to, timeouts
from infrastructure.provider_endpoint import ProviderEndpoint


class AnthropicClient(SdkClient):
    """Sends and returns bytes, like OpenAIClient. The SDK's typed method would warn about models that it
    considers old and reject long outputs without a timeout.
    """

    def __init__(self, url: str, access: ProviderEndpoint) -> None:
        self._is_simulated = access.is_simulated
        self._sdk = AsyncAnthropic(
            api_key=access.key,
            base_url=url or None,
            max_retries=0,
            http_client=http_client(),
            open_telemetry=False,  # our usage records contain the same data and no prompts
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
