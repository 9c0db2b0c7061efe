"""Faults on demand: which, of which requests, and how often. What they look like is in ``bad_days``."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Router, delete, post
from litestar.datastructures import State
from litestar.params import JSONBody

PATH = "/_faults"

FaultKind = Literal[
    "status",  # this status, body and headers; without a status the usual answer, after the delay
    "timeout",  # no answer, ever
    "reset",  # a TCP reset before the answer's first byte
    "reset_midway",  # and one in the middle of it
    "truncated",  # a proper answer with half of its document
    "wrong_schema",  # a well-formed reply whose content is not what was asked for
    "empty",  # a status and no body
    "html",  # a page instead of a document
    "drip",  # the right answer, a byte at a time
    "error_in_200",  # the provider's error form under a status of success
    "refusal",  # a model that declines, in its provider's words
    "duplicate",  # what there is in the answer, twice
]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For the next ``times`` requests of a route: wait, then go wrong in this way. A fault replaces the
    one that was set for the same route and method.
    """

    route: str  # a path or the beginning of one, as /auth/v1/invite or /openai; the longest that fits counts
    method: str | None = None
    kind: FaultKind = "status"
    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    code: str | None = None  # makes the body the provider's error form with this code
    body: str = '{"message": "A fault was asked for."}'
    headers: dict[str, str] = {}
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 0
    interval_ms: Annotated[float, msgspec.Meta(ge=0, le=60_000)] = 1_000  # between two bytes of a drip
    times: Annotated[int, msgspec.Meta(ge=0)] | None = 1  # 0 takes a fault back, null is until then

    def fits(self, method: str, path: str) -> bool:
        return path.startswith(self.route) and self.method in {None, method}


class Faults:
    """Taking one counts it at the same moment, so that no two requests get the same."""

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
