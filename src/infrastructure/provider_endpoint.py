"""URL and key of a provider."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple


class ProviderEndpoint(NamedTuple):
    url: str  # empty: the default of the provider's client
    key: str
    is_simulated: bool = False

    def __repr__(self) -> str:
        return f"Access({self.url!r})"


EndpointResolver = Callable[[], Awaitable[ProviderEndpoint]]
"""Called before every request, because a key may be rotated or a simulator restarted. Must be cheap."""
