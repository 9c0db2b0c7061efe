"""Actor runs via Apify's client, without the client's retries."""

import re
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import impit
from apify_client import ApifyClientAsync
from apify_client.errors import ApifyApiError
from apify_client.http_clients import ImpitHttpClientAsync

from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.scraping.apify_port import ActorRun, ActorRunRequest, ActorRuns, DatasetItems
from infrastructure.scraping.errors import ScrapeError, Trouble
from shared.retry import retry_after_s

API_URL = "https://api.apify.com"
CALL_TIMEOUT_S = 15.0
PAGE_ITEMS = 100
MARKED_RUNS_MAX = 100
CLOCKS_APART = timedelta(minutes=1)  # maximum difference between our clock and Apify's
CODE = re.compile(r"[a-z0-9-]{1,60}")
# The account has too many active runs; the limit clears when other runs end.
NOT_NOW = frozenset({"actor-memory-limit-exceeded", "concurrent-runs-limit-exceeded"})


class _Call:
    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.retry_after: str | None = None


_call: ContextVar[_Call | None] = ContextVar("apify_call", default=None)


class _Http(ImpitHttpClientAsync):
    """Captures Retry-After, which the client does not expose. Adds the mark to the user agent, which Apify
    stores with the run: Apify has no idempotency keys by which a lost run could be found.
    """

    async def send_request(
        self,
        *,
        method: str,
        url: str,
        headers: dict[str, str],
        content: bytes | AsyncIterator[bytes] | None,
        timeout: float | None,  # noqa: ASYNC109  signature of the base class
        stream: bool,
    ) -> impit.Response:
        call = _call.get()
        if call is not None and call.mark:
            headers = {**headers, "User-Agent": f"{headers.get('User-Agent', '')}; oslira/{call.mark}"}
        response = await super().send_request(
            method=method, url=url, headers=headers, content=content, timeout=timeout, stream=stream
        )
        if call is not None:
            call.retry_after = response.headers.get("retry-after")
        return response


class ApifyRuns(ActorRuns):
    def __init__(self, access: ProviderEndpoint, *, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._client = ApifyClientAsync.with_custom_http_client(
            token=access.key, api_url=access.url or API_URL, http_client=_Http(max_retries=0)
        )

    async def start(self, order: ActorRunRequest, *, mark: str) -> ActorRun:
        with _in_our_words(mark):
            run = await self._client.actor(order.actor).start(
                run_input=order.input,
                max_items=order.items_max,
                max_total_charge_usd=order.usd_max,
                memory_mbytes=order.memory_mbytes,
                run_timeout=timedelta(seconds=order.timeout_s),
                timeout=timedelta(seconds=self._timeout_s),
            )
            return _run(run)

    async def marked(self, actor: str, *, mark: str, since: datetime) -> list[ActorRun]:
        with _in_our_words():
            listed = (
                await self._client.actor(actor)
                .runs()
                .list(
                    limit=MARKED_RUNS_MAX,
                    desc=True,
                    started_after=since - CLOCKS_APART,
                    timeout=timedelta(seconds=self._timeout_s),
                )
            )
            return [_run(run) for run in listed.items if mark in (run.meta.user_agent or "")]

    async def wait(self, run_id: str, *, wait_s: float) -> ActorRun:
        with _in_our_words():
            run = await self._client.run(run_id).wait_for_finish(
                wait_duration=timedelta(seconds=wait_s),
                timeout=timedelta(seconds=wait_s + self._timeout_s),
            )
            if run is None:
                raise ScrapeError("unavailable", detail="the run is not there")
            return _run(run)

    async def items(self, run: ActorRun, *, items_max: int) -> DatasetItems:
        with _in_our_words():
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
        with _in_our_words():
            return _run(await self._client.run(run_id).abort(timeout=timedelta(seconds=self._timeout_s / 3)))


@contextmanager
def _in_our_words(mark: str = "") -> Generator[None]:
    call = _Call(mark)
    token = _call.set(call)
    try:
        yield
    except ScrapeError:
        raise
    except ApifyApiError as error:
        raise _refusal(error, retry_after_s(call.retry_after)) from None
    except impit.TimeoutException:
        raise ScrapeError("timeout") from None
    except impit.ConnectError:
        raise ScrapeError("connection", detail="not connected", was_sent=False) from None
    except impit.HTTPError as error:
        raise ScrapeError("connection", detail=type(error).__name__) from None
    except Exception as error:  # noqa: BLE001  e.g. pydantic's errors or KeyError for an unexpected body
        # Without cause and text, because both may quote the response.
        raise ScrapeError("garbled", detail=type(error).__name__) from None
    finally:
        _call.reset(token)


def _refusal(error: ApifyApiError, after_s: float | None) -> ScrapeError:
    status = error.status_code
    code = error.type if isinstance(error.type, str) and CODE.fullmatch(error.type) else ""
    is_theirs = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    trouble: Trouble = "refused"
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in NOT_NOW:
        trouble = "not_now"
    elif status == HTTPStatus.REQUEST_TIMEOUT:
        trouble = "timeout"
    elif is_theirs or (status == HTTPStatus.NOT_FOUND and error.http_method == "GET"):
        trouble = "unavailable"  # a new run may not be visible everywhere yet
    return ScrapeError(trouble, detail=f"{status} {code}".strip(), retry_after_s=after_s, was_sent=is_theirs)


def _run(run: Any) -> ActorRun:  # noqa: ANN401  Apify's Run and RunListItem share these fields
    pricing = getattr(run, "pricing_info", None)
    is_by_item = getattr(pricing, "pricing_model", None) == "PRICE_PER_DATASET_ITEM"
    return ActorRun(
        id=run.id,
        dataset_id=run.default_dataset_id,
        status=run.status,
        usd=run.usage_total_usd,
        item_usd=getattr(pricing, "price_per_unit_usd", None) if is_by_item else None,
    )
