"""Latency of the simulated providers, as one distribution per route.

The defaults are the times in the product's documents (8 s for a profile, 3 to 15 s for a completion)
multiplied by a scale, which is 0 unless it is set.
"""

import math
import random
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from litestar import Router, delete, post
from litestar.datastructures import State
from litestar.params import JSONBody

PATH = "/_latency"
RUN = "/apify/run"  # not a request: the time between the start and the end of an actor's run
P95_DEVIATIONS = 1.6449  # of a normal distribution

Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=3_600_000)]
Scale = Annotated[float, msgspec.Meta(ge=0, le=100)]


class Latency(msgspec.Struct, frozen=True, tag_field="distribution", forbid_unknown_fields=True):
    """``route`` is a path or a prefix; the longest match counts."""

    route: str

    def draw_ms(self, rng: random.Random) -> float:
        raise NotImplementedError


class Fixed(Latency, frozen=True, tag="fixed", forbid_unknown_fields=True):
    ms: Milliseconds

    def draw_ms(self, rng: random.Random) -> float:  # noqa: ARG002  a constant uses no randomness
        return self.ms


class Uniform(Latency, frozen=True, tag="uniform", forbid_unknown_fields=True):
    low_ms: Milliseconds
    high_ms: Milliseconds

    def draw_ms(self, rng: random.Random) -> float:
        return rng.uniform(self.low_ms, self.high_ms)


class Lognormal(Latency, frozen=True, tag="lognormal", forbid_unknown_fields=True):
    median_ms: Annotated[float, msgspec.Meta(gt=0, le=3_600_000)]
    p95_ms: Annotated[float, msgspec.Meta(gt=0, le=3_600_000)]

    def draw_ms(self, rng: random.Random) -> float:
        deviation = math.log(self.p95_ms / self.median_ms) / P95_DEVIATIONS
        return rng.lognormvariate(math.log(self.median_ms), deviation)


DEFAULTS: tuple[Latency, ...] = (
    Lognormal(RUN, 8_000, 14_000),
    Lognormal("/openai/v1/responses", 6_000, 15_000),
    Lognormal("/openai/v1/embeddings", 300, 900),
    Lognormal("/anthropic/v1/messages", 6_000, 15_000),
    Lognormal("/scraperapi", 4_000, 10_000),
)


class LatencyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``routes`` apply without the scale; ``scale`` multiplies the defaults of all other routes."""

    scale: Scale | None = None
    routes: tuple[Fixed | Uniform | Lognormal, ...] = ()


class Latencies:
    def __init__(self, scale: float) -> None:
        self._default_scale = scale
        self._rng = random.Random()  # noqa: S311  not used for security
        self.reset()

    def reset(self) -> None:
        self._scale = self._default_scale
        self._overrides: dict[str, Latency] = {}

    def set(self, routes: Iterable[Latency], *, scale: float | None) -> None:
        self._overrides |= {latency.route: latency for latency in routes}
        self._scale = self._scale if scale is None else scale

    def draw_s(self, path: str) -> float:
        fitting = [latency for latency in self._overrides.values() if path.startswith(latency.route)]
        if fitting:
            return max(fitting, key=lambda latency: len(latency.route)).draw_ms(self._rng) / 1_000
        for latency in DEFAULTS if self._scale else ():
            if path.startswith(latency.route):
                return latency.draw_ms(self._rng) * self._scale / 1_000
        return 0.0


@post("/", status_code=204, sync_to_thread=False)
def set_latency(data: JSONBody[LatencyRequest], state: State) -> None:
    state.latencies.set(data.routes, scale=data.scale)


@delete("/", sync_to_thread=False)
def reset_latency(state: State) -> None:
    state.latencies.reset()


def latency_router() -> Router:
    handlers: list[Any] = [set_latency, reset_latency]
    return Router(PATH, route_handlers=handlers)
