"""Liveness and readiness of this process, with the state of each binding."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
from litestar import Controller, Request, Response, get
from litestar.di import NamedDependency

from features.auth.application.authentication import Authenticator
from shared.errors import Unavailable
from shared.http.responses import ok
from shared.http.route_policy import PUBLIC, UNCOUNTED
from shared.middleware.rate_limits import FailureRateLimit

VERSION = "0.1.0"
CHECK_TIMEOUT_S = 5.0
CACHED_FOR_S = 1.0
LIMITS_TIMEOUT_S = 1.0

Mode = Literal["real", "local", "simulated", "absent"]


class HealthCheck(NamedTuple):
    """``check`` returns a short description of the binding's state; raises if the binding does not work."""

    mode: Mode
    check: Callable[[], Awaitable[str]]


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    mode: Mode
    detail: str


class Readiness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything but ``status`` is for operators."""

    status: Literal["ready", "degraded", "not_ready"]
    environment: str | None = None
    version: str | None = None
    bindings: dict[str, Binding] = {}


class Liveness(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok"]
    version: str


@dataclass(slots=True)
class Health:
    environment: str
    checks: Mapping[str, HealthCheck]
    essential: frozenset[str]  # no request succeeds without these; most succeed without the others
    _last: tuple[float, Readiness] | None = None
    _checking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def readiness(self) -> Readiness:
        """Runs all health checks. The result is cached for CACHED_FOR_S, so frequent calls are cheap."""
        async with self._checking:
            if self._last and time.monotonic() - self._last[0] < CACHED_FOR_S:
                return self._last[1]
            results = await asyncio.gather(*(_run(mode, check) for mode, check in self.checks.values()))
            bindings = dict(zip(self.checks, results, strict=True))
            readiness = Readiness(
                status=self._status(bindings),
                environment=self.environment,
                version=VERSION,
                bindings=bindings,
            )
            self._last = (time.monotonic(), readiness)
            return readiness

    def _status(self, bindings: Mapping[str, Binding]) -> Literal["ready", "degraded", "not_ready"]:
        failed = {name for name, binding in bindings.items() if not binding.ok}
        if failed & self.essential:
            return "not_ready"
        return "degraded" if failed else "ready"


async def _run(mode: Mode, check: Callable[[], Awaitable[str]]) -> Binding:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return Binding(ok=True, mode=mode, detail=await check())
    except Exception as error:  # noqa: BLE001  any error is a failed check
        # Shows only the type of the error, because its text may contain an address with a password.
        return Binding(ok=False, mode=mode, detail=_description(error))


def _description(error: BaseException) -> str:
    cause = error.__cause__
    if isinstance(error, HealthCheckFailed):
        return str(error)
    return f"{type(error).__name__} ({type(cause).__name__})" if cause else type(error).__name__


class HealthCheckFailed(RuntimeError):
    """A failed health check whose text is safe to show."""


class HealthController(Controller):
    path = "/health"
    tags = ("Health",)
    opt = PUBLIC | UNCOUNTED  # the shared rate limits need the database, which may be down
    security = ({},)

    @get("/", sync_to_thread=False)
    def get_health(self) -> Liveness:
        """Check that the process responds; restart it if this fails."""
        return Liveness(status="ok", version=VERSION)

    @get(
        "/ready",
        responses={
            200: ok(Readiness, "Ready or degraded"),
            503: ok(Readiness, "A dependency of every request does not work"),
        },
    )
    async def get_readiness(
        self,
        request: Request[Any, Any, Any],
        health: NamedDependency[Health],
        authenticator: NamedDependency[Authenticator],
        readiness_limits: NamedDependency[FailureRateLimit],
    ) -> Response[Readiness]:
        """Check whether this process can handle requests.

        Send it no traffic while the status is 503. `degraded` means that most requests succeed. With an
        operator's token the response lists each dependency (`bindings`): whether it works, and whether it is
        real, local, simulated or absent.
        """
        with suppress(Unavailable, TimeoutError):  # readiness does not depend on the rate limits
            async with asyncio.timeout(LIMITS_TIMEOUT_S):
                await readiness_limits.count(request.scope, "health")
        readiness = await health.readiness()
        status_code = 503 if readiness.status == "not_ready" else 200
        authorization = next(
            (value for name, value in request.scope["headers"] if name == b"authorization"), b""
        )
        if not await authenticator.is_operator(authorization):
            readiness = Readiness(status=readiness.status)
        return Response(readiness, status_code=status_code)
