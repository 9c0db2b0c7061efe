"""Control routes of the simulators for tests and manual trials: request counts and settings."""

from typing import Annotated, Any

import msgspec
from litestar import Router, delete, get, post
from litestar.datastructures import State
from litestar.params import JSONBody

from simulators.instagram.apify_runs import End


class SettingsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Absent settings stay unchanged."""

    apify_runs_max: Annotated[int, msgspec.Meta(ge=0)] | None = None  # at the same time
    apify_run_ends: End | None = None  # how the next runs end
    gateway_token: str | None = None  # the token that Cloudflare's gateway requires; empty for none


@get("/_state", sync_to_thread=False)
def get_state(state: State) -> dict[str, Any]:
    runs, gateway = state.runs, state.gateway
    return {
        "requests": dict(state.requests.counts),
        "in_flight": {route: count for route, count in state.requests.in_flight.items() if count},
        "apify": {
            "started": runs.started,
            "running": runs.running,
            "running_max": runs.running_max,
            "aborted": runs.aborted,
        },
        "gateway": [msgspec.to_builtins(call) for call in gateway.calls],
    }


@delete("/_state", sync_to_thread=False)
def clear_state(state: State) -> None:
    """Resets the counts and empties the prompt cache."""
    state.requests.counts.clear()
    state.runs.clear()
    state.gateway.clear()
    state.prompt_cache.clear()


@post("/_settings", status_code=204, sync_to_thread=False)
def set_settings(data: JSONBody[SettingsRequest], state: State) -> None:
    if data.apify_runs_max is not None:
        state.runs.runs_max = data.apify_runs_max
    if data.apify_run_ends is not None:
        state.runs.end = data.apify_run_ends
    if data.gateway_token is not None:
        state.gateway.token = data.gateway_token


@delete("/_settings", sync_to_thread=False)
def reset_settings(state: State) -> None:
    state.runs.reset_settings()
    state.gateway.token = ""


def control_router() -> Router:
    handlers: list[Any] = [get_state, clear_state, set_settings, reset_settings]
    return Router("/", route_handlers=handlers)
