"""Request counts per route, and the number of requests in flight."""

import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

_OF_ONE_THING = re.compile(r"/(actor-runs|datasets|admin/users)/[^/]+")
_STRIPE_ID = re.compile(r"(?<=/)[a-z_]+_[0-9A-Za-z]{14,}")


class RequestCounter:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()

    @contextmanager
    def counted(self, method: str, path: str) -> Generator[None]:
        """Counts routes with an id together. A request is in flight until its response, or its disconnect."""
        route = f"{method} " + _STRIPE_ID.sub("{id}", _OF_ONE_THING.sub(r"/\1/{id}", path.rstrip("/")))
        self.counts[route] += 1
        self.under_way[route] += 1
        try:
            yield
        finally:
            self.under_way[route] -= 1
