"""Faults on demand: kind, route and number of requests. ``middleware`` applies them."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Router, delete, post
from litestar.datastructures import State
from litestar.params import JSONBody

PATH = "/_faults"

FaultKind = Literal[
    "status",  # this status, body and headers; without a status the usual response, after the delay
    "timeout",  # no response
    "reset",  # a TCP reset before the first byte of the response
    "reset_midway",  # a TCP reset in the middle of the response
    "truncated",  # a success status with half of the document
    "wrong_schema",  # a well-formed response whose content does not match the requested schema
    "empty",  # a status and no body
    "html",  # an HTML page instead of a document
    "drip",  # the correct response, one byte at a time
    "error_in_200",  # the provider's error format with a success status
    "refusal",  # a model that declines, in its provider's words
    "duplicate",  # the content of the response, twice
]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Delay and failure for the next ``times`` requests of a route. A fault replaces an earlier one for the
    same route and method.
    """

    route: str  # a path or a prefix such as /auth/v1/invite or /openai; the longest match counts
    method: str | None = None
    kind: FaultKind = "status"
    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    code: str | None = None  # makes the body an error in the provider's format with this code
    body: str = '{"message": "Injected fault."}'
    headers: dict[str, str] = {}
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 0
    interval_ms: Annotated[float, msgspec.Meta(ge=0, le=60_000)] = 1_000  # between two bytes of a drip
    times: Annotated[int, msgspec.Meta(ge=0)] | None = 1  # 0 removes the fault, null keeps it until removed

    def fits(self, method: str, path: str) -> bool:
        return path.startswith(self.route) and self.method in {None, method}


class Faults:
    """Taking a fault counts it in the same step, so two requests never share one."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str | None], Fault] = {}

    def set(self, fault: Fault) -> None:
        self._waiting[fault.route, fault.method] = fault

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, method: str, path: str) -> Fault | None:
        fitting = [fault for fault in self._waiting.values() if fault.fits(method, path) and fault.times != 0]
        if not fitting:
            return None
        fault = max(fitting, key=lambda fault: (len(fault.route), fault.method is not None))
        if fault.times is not None:
            self.set(msgspec.structs.replace(fault, times=fault.times - 1))
        return fault


@post("/", status_code=204, sync_to_thread=False)
def set_fault(data: JSONBody[Fault], state: State) -> None:
    state.faults.set(data)


@delete("/", sync_to_thread=False)
def clear_faults(state: State) -> None:
    state.faults.clear()


def faults_router() -> Router:
    handlers: list[Any] = [set_fault, clear_faults]
    return Router(PATH, route_handlers=handlers)
