"""Actor runs via Apify's client, without the client's retries."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import impit
from apify_client import ApifyClientAsync
from apify_client.errors import ApifyApiError
from apify_client.http_clients import ImpitHttpClientAsync

from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.scraping.apify_scrape import ActorRun, ActorRunRequest, ActorRuns, DatasetItems
from infrastructure.scraping.errors import ErrorKind, ScrapeError
from shared.retry import retry_after_s

API_URL = "https://api.apify.com"
CALL_TIMEOUT_S = 15.0
PAGE_ITEMS = 100
CODE = re.compile(r"[a-z0-9-]{1,60}")
# The account has too many active runs; the limit clears when other runs end.
MAYBE_STARTED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
LIMITED = frozenset({"actor-memory-limit-exceeded", "concurrent-runs-limit-exceeded"})


_retry_after: ContextVar[list[str]] = ContextVar("apify_retry_after")


class _Http(ImpitHttpClientAsync):
    """Captures Retry-After, which the client does not expose."""

    async def send_request(self, **request: Any) -> impit.Response:  # noqa: ANN401  as in the base class
        response = await super().send_request(**request)
        _retry_after.get().append(response.headers.get("retry-after") or "")
        return response


class ApifyRuns(ActorRuns):
    def __init__(self, endpoint: ProviderEndpoint, *, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._client = ApifyClientAsync.with_custom_http_client(
            token=endpoint.key, api_url=endpoint.url or API_URL, http_client=_Http(max_retries=0)
        )

    async def start(self, request: ActorRunRequest) -> ActorRun:
        with _classified_errors():
            run = await self._client.actor(request.actor).start(
                run_input=request.input,
                max_items=request.items_max,
                max_total_charge_usd=request.usd_max,
                memory_mbytes=request.memory_mbytes,
                run_timeout=timedelta(seconds=request.timeout_s),
                timeout=timedelta(seconds=self._timeout_s),
            )
            return _run(run)

    async def wait(self, run_id: str, *, wait_s: float) -> ActorRun:
        with _classified_errors():
            run = await self._client.run(run_id).wait_for_finish(
                wait_duration=timedelta(seconds=wait_s),
                timeout=timedelta(seconds=wait_s + self._timeout_s),
            )
            if run is None:
                raise ScrapeError("unavailable", detail="run not found")
            return _run(run)

    async def items(self, run: ActorRun, *, items_max: int) -> DatasetItems:
        with _classified_errors():
            dataset = self._client.dataset(run.dataset_id)
            found: list[Any] = []
            while True:
                page = await dataset.list_items(
                    offset=len(found),
                    limit=min(PAGE_ITEMS, items_max - len(found)),
                    timeout=timedelta(seconds=2 * self._timeout_s),
                )
                found.extend(page.items)
                if not page.items or len(found) >= min(page.total, items_max):
                    return DatasetItems(found[:items_max], max(page.total, len(found)))

    async def abort(self, run_id: str) -> ActorRun:
        with _classified_errors():
            return _run(await self._client.run(run_id).abort(timeout=timedelta(seconds=self._timeout_s / 3)))

    async def close(self) -> None:
        """The client has no connections to close."""


@contextmanager
def _classified_errors() -> Generator[None]:
    received: list[str] = []
    token = _retry_after.set(received)
    try:
        yield
    except ScrapeError:
        raise
    except ApifyApiError as error:
        raise _error_of(error, retry_after_s(received[-1] if received else None)) from None
    except impit.TimeoutException:
        raise ScrapeError("timeout") from None
    except impit.ConnectError:
        raise ScrapeError("connection", detail="not connected", was_sent=False) from None
    except impit.HTTPError as error:
        raise ScrapeError("connection", detail=type(error).__name__) from None
    except Exception as error:  # noqa: BLE001  e.g. pydantic's errors or KeyError for an unexpected body
        # Without cause and text, because both may quote the response.
        raise ScrapeError("malformed_response", detail=type(error).__name__) from None
    finally:
        _retry_after.reset(token)


def _error_of(error: ApifyApiError, after_s: float | None) -> ScrapeError:
    status = error.status_code
    code = error.type if isinstance(error.type, str) and CODE.fullmatch(error.type) else ""
    kind: ErrorKind = "rejected"
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in LIMITED:
        kind = "limited"
    elif status == HTTPStatus.REQUEST_TIMEOUT:
        kind = "timeout"
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR or (
        status == HTTPStatus.NOT_FOUND and error.http_method == "GET"
    ):
        kind = "unavailable"  # a new run may not be visible everywhere yet
    return ScrapeError(
        kind, detail=f"{status} {code}".strip(), retry_after_s=after_s, was_sent=status in MAYBE_STARTED
    )


def _run(run: Any) -> ActorRun:  # noqa: ANN401  Apify's Run
    pricing = getattr(run, "pricing_info", None)
    is_by_item = getattr(pricing, "pricing_model", None) == "PRICE_PER_DATASET_ITEM"
    return ActorRun(
        id=run.id,
        dataset_id=run.default_dataset_id,
        status=run.status,
        usd=run.usage_total_usd,
        item_usd=getattr(pricing, "price_per_unit_usd", None) if is_by_item else None,
    )
