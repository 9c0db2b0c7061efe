"""OpenAI SDK client. Import it lazily: the import takes a second."""

import httpx2
from openai import AsyncOpenAI

from infrastructure.ai.providers.clients import SdkClient, SdkReply
from infrastructure.ai.providers.transport import http_client, reply_to, timeouts
from infrastructure.provider_endpoint import ProviderEndpoint


class OpenAIClient(SdkClient):
    """Sends and returns bytes through the SDK's untyped method: the typed methods traverse the whole prompt
    and build a model of the whole response.
    """

    def __init__(self, url: str, access: ProviderEndpoint) -> None:
        self._is_simulated = access.is_simulated
        self._sdk = AsyncOpenAI(
            api_key=access.key, base_url=url or None, max_retries=0, http_client=http_client()
        )

    async def post(self, path: str, body: bytes, *, headers: dict[str, str], within_s: float) -> SdkReply:
        sent = self._sdk.post(
            path,
            cast_to=httpx2.Response,
            content=body,
            options={"headers": headers, "timeout": timeouts(within_s), "security": {"bearer_auth": True}},
        )
        return await reply_to(sent, is_simulated=self._is_simulated)

    async def close(self) -> None:
        await self._sdk.close()
