"""Simulated Apify API, version 2, as far as its client uses it: runs of two Instagram actors, datasets."""

import asyncio
import gzip
import zlib
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from litestar import Response, Router, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath

from simulators.faults.provider_requests import AnyRequest, RequestRejected, apify_error, error_handlers
from simulators.instagram.apify_runs import MEGABYTES_DEFAULT, ActorRun, RunOptions

PATH = "/apify/v2"
ACTORS = frozenset({"apify~instagram-profile-scraper", "apify~instagram-scraper"})
WAIT_MAX_S = 60.0
TIMEOUT_DEFAULT_S = 3_600
NO_LIMIT = 999_999_999_999  # Apify's value for a request without a limit
Json = dict[str, Any]


def _has_token(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    token = connection.headers.get("authorization", "").removeprefix("Bearer").strip()
    if not token and not connection.query_params.get("token"):
        raise RequestRejected(401, "token-not-provided", "Authentication token was not provided")


def _query_number(request: AnyRequest, name: str, default: float | None = None) -> float | None:
    text = request.query_params.get(name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise RequestRejected(400, "invalid-parameter", f"Parameter {name} is not a number") from None


async def _run_input(request: AnyRequest) -> Json:
    body = await request.body()
    try:
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return msgspec.json.decode(body or b"{}", type=Json)
    except (msgspec.DecodeError, OSError, EOFError, zlib.error):
        raise RequestRejected(400, "invalid-input", "Input is not a JSON object") from None


@post("/actors/{actor:str}/runs", status_code=201)
async def start_run(actor: FromPath[str], request: AnyRequest, state: State) -> Json:
    if actor not in ACTORS:
        raise RequestRejected(404, "record-not-found", "Actor was not found")
    run_input = await _run_input(request)
    if not run_input.get("usernames") and not run_input.get("directUrls"):
        raise RequestRejected(400, "invalid-input", "Input is not valid: Field input.usernames is required")
    items_max, dollars_max = _query_number(request, "maxItems"), _query_number(request, "maxTotalChargeUsd")
    options = RunOptions(
        timeout_s=int(_query_number(request, "timeout", TIMEOUT_DEFAULT_S) or 0),
        megabytes=int(_query_number(request, "memory", MEGABYTES_DEFAULT) or MEGABYTES_DEFAULT),
        items_max=None if items_max is None else int(items_max),
        dollars_max=dollars_max,
    )
    run = state.runs.start(actor, run_input, options, user_agent=request.headers.get("user-agent", ""))
    await _wait(run, request)
    return {"data": _run(run)}


@get("/actors/{actor:str}/runs", sync_to_thread=False)
def list_runs(actor: FromPath[str], request: AnyRequest, state: State) -> Json:
    offset, limit = (
        int(_query_number(request, "offset", 0) or 0),
        int(_query_number(request, "limit", 1_000) or 1_000),
    )
    is_backwards = request.query_params.get("desc") in {"1", "true"}
    runs: list[ActorRun] = state.runs.of_actor(actor, since=_moment(request.query_params.get("startedAfter")))
    page = (runs[::-1] if is_backwards else runs)[offset : offset + limit]
    counts = {"total": len(runs), "offset": offset, "limit": limit, "count": len(page), "desc": is_backwards}
    return {"data": {**counts, "items": [_listed(run) for run in page]}}


@get("/actor-runs/{run_id:str}")
async def get_run(run_id: FromPath[str], request: AnyRequest, state: State) -> Json:
    run = state.runs.by_id(run_id)
    await _wait(run, request)
    return {"data": _run(run)}


async def _wait(run: ActorRun, request: AnyRequest) -> None:
    wait_s = min(_query_number(request, "waitForFinish", 0) or 0, WAIT_MAX_S)
    if wait_s:
        with suppress(TimeoutError):
            await asyncio.wait_for(run.finished.wait(), wait_s)


@post("/actor-runs/{run_id:str}/abort", status_code=200, sync_to_thread=False)
def abort_run(run_id: FromPath[str], state: State) -> Json:
    run = state.runs.by_id(run_id)
    state.runs.abort(run)
    return {"data": _run(run)}


def _listed(run: ActorRun) -> Json:
    """Returns the shorter form of a run that Apify uses in lists."""
    return {name: value for name, value in _run(run).items() if name not in {"stats", "options", "usage"}}


def _run(run: ActorRun) -> Json:
    options = run.options
    units = options.megabytes / 1_024 * run.seconds / 3_600
    return {
        "id": run.id,
        "actId": "dSCLg0C3YEZ83HzYX" if "profile" in run.actor else "shu8hvrXbJbY3Eb9W",
        "userId": "simulated",
        "startedAt": _text(run.started_at),
        "finishedAt": _text(run.finished_at),
        "status": run.status,
        "statusMessage": None,
        "isStatusMessageTerminal": None,
        "meta": {"origin": "API", "userAgent": run.user_agent},
        "stats": {
            "inputBodyLen": len(msgspec.json.encode(run.run_input)),
            "restartCount": 0,
            "resurrectCount": 0,
            "durationMillis": int(run.seconds * 1_000),
            "runTimeSecs": run.seconds,
            "computeUnits": units,
        },
        "options": {
            "build": "latest",
            "timeoutSecs": options.timeout_s,
            "memoryMbytes": options.megabytes,
            "diskMbytes": 2 * options.megabytes,
            "maxItems": options.items_max,
            "maxTotalChargeUsd": options.dollars_max,
        },
        "buildId": "simulated",
        "buildNumber": "0.0.1",
        "exitCode": {"SUCCEEDED": 0, "FAILED": 1}.get(run.status),
        "defaultKeyValueStoreId": f"k{run.dataset_id[1:]}",
        "defaultDatasetId": run.dataset_id,
        "defaultRequestQueueId": f"q{run.dataset_id[1:]}",
        "chargedEventCounts": {"result": run.items_count()},
        "usage": {"ACTOR_COMPUTE_UNITS": units},
        "usageTotalUsd": run.dollars,
    }


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        raise RequestRejected(400, "invalid-parameter", "Parameter startedAfter is not a date") from None


def _text(moment: datetime | None) -> str | None:
    return moment and f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z"


@get("/datasets/{dataset_id:str}/items", sync_to_thread=False)
def list_items(dataset_id: FromPath[str], request: AnyRequest, state: State) -> Response[list[Json]]:
    run: ActorRun = state.runs.by_dataset(dataset_id)
    offset, limit = (
        int(_query_number(request, "offset", 0) or 0),
        int(_query_number(request, "limit", NO_LIMIT) or NO_LIMIT),
    )
    is_backwards = request.query_params.get("desc") in {"1", "true"}
    everything = run.items()
    page = (everything[::-1] if is_backwards else everything)[offset : offset + limit]
    headers = {
        "x-apify-pagination-total": str(len(everything)),
        "x-apify-pagination-offset": str(offset),
        "x-apify-pagination-count": str(len(page)),
        "x-apify-pagination-limit": str(limit),
        "x-apify-pagination-desc": "true" if is_backwards else "false",
    }
    return Response(page, headers=headers)


def _error_document(error: RequestRejected) -> Json:
    return apify_error(error.status, error.code, error.message)


def apify_router() -> Router:
    return Router(
        PATH,
        route_handlers=[start_run, list_runs, get_run, abort_run, list_items],
        guards=[_has_token],
        exception_handlers=error_handlers(_error_document),
    )
