"""Where a provider is reached, and with which key."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple


class ProviderEndpoint(NamedTuple):
    url: str  # empty: where the provider's own client looks
    key: str
    is_simulated: bool = False

    def __repr__(self) -> str:
        return f"Access({self.url!r})"


EndpointResolver = Callable[[], Awaitable[ProviderEndpoint]]
"""Asked before every call: a key may have been rotated, a simulator started anew. Costs next to nothing."""
