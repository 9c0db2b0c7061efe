"""Cloudflare AI Gateway in front of a provider: response cache, log and metrics."""

import json
from collections.abc import Mapping

import msgspec

from infrastructure.ai.providers.base import ModelRequest

BASE = "https://gateway.ai.cloudflare.com/v1"


class CloudflareGateway(msgspec.Struct, frozen=True):
    account: str
    gateway: str
    token: str  # empty: the gateway requires no token
    cache_ttl_s: int  # 0: the gateway caches nothing
    base: str = BASE

    def __repr__(self) -> str:
        return f"CloudflareGateway({self.account!r}, {self.gateway!r})"

    def url(self, provider: str) -> str:
        return f"{self.base}/{self.account}/{self.gateway}/{provider}"

    def headers(self, request: ModelRequest) -> dict[str, str]:
        """Headers of a prompt. Entries are per tenant because ``completion_key`` contains the account."""
        headers = self.plain_headers()
        if not (request.is_fresh or request.validation_error is not None or not self.cache_ttl_s):
            del headers["cf-aig-skip-cache"]
            headers |= {"cf-aig-cache-ttl": str(self.cache_ttl_s), "cf-aig-cache-key": request.completion_key}
        metadata = {"account": request.owner.account_id, "run": request.owner.run_id, "task": request.task}
        # Escaped to ASCII because header values must be ASCII.
        headers["cf-aig-metadata"] = json.dumps(
            {name: str(value) for name, value in metadata.items() if value}
        )
        return headers

    def plain_headers(self) -> dict[str, str]:
        """Headers of a call that must not be answered from the cache."""
        skip_cache = {"cf-aig-skip-cache": "true"}
        return skip_cache | ({"cf-aig-authorization": f"Bearer {self.token}"} if self.token else {})


def is_cache_hit(headers: Mapping[str, str]) -> bool:
    return headers.get("cf-aig-cache-status", "").upper() == "HIT"
