"""What the other end saw: how often each route was asked."""

import re
from collections import Counter

_OF_ONE_THING = re.compile(r"/(actor-runs|datasets|admin/users)/[^/]+")


class Requests:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, method: str, path: str) -> None:
        """The routes of single things count together."""
        route = _OF_ONE_THING.sub(r"/\1/{id}", path.rstrip("/"))
        self.counts[f"{method} {route}"] += 1
