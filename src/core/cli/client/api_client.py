"""API client of the commands: readable problems, and safe retries of lost responses."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from uuid import uuid4

import click
import httpx
import msgspec

from shared.retry import retry_after_s
from shared.text import plain

T = TypeVar("T")
Json = dict[str, Any]
Query = Mapping[str, str | int | bool | None]

# The read timeout is longer than the server holds a long poll.
TIMEOUTS = httpx.Timeout(40.0, connect=10.0)
RETRY_TIMEOUT_S = 60.0
BACKOFF_S, BACKOFF_S_MAX = 0.2, 2.0
PAGE_MAX = 100
ADMIN_PATH = "/v1/admin/"
ACCOUNT_HEADER = "Oslira-Account"
IN_FLIGHT = "idempotency_key_in_flight"
RETRIED_STATUSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    items: list[T]
    next_cursor: str | None = None


class Problem(msgspec.Struct, frozen=True):
    """Problem document of RFC 9457. Every field is optional, because a proxy may have sent the response."""

    code: str = ""
    detail: str = ""
    request_id: str = ""


class ApiProblem(click.ClickException):
    """The server's problem, shown with the server's own text."""

    def __init__(self, status: int, problem: Problem) -> None:
        self.status, self.code = status, problem.code
        text = plain(problem.detail) or f"The server responded with status {status}."
        references = [plain(problem.code)] if problem.code else []
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and problem.request_id:
            references.append(f"request {plain(problem.request_id)}")
        super().__init__(f"{text} ({', '.join(references)})" if references else text)


class ServerUnreachable(click.ClickException):
    def __init__(self, url: str) -> None:
        super().__init__(
            f"No server responds at {url}.\n"
            "Start one with: oslira serve\n"
            "If it runs at another address, use --url, or set OSLIRA_PORT to the port of the server."
        )


class NotAnOsliraServer(click.ClickException):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"The server at {url} is not Oslira, or it is a different version ({plain(reason)})."
        )


class Api:
    """Every POST carries an Idempotency-Key, so that it can be retried if its response was lost.

    ``operator_token`` is set only if this machine signed it, for a server on this machine. Administration
    routes are then requested with it.
    """

    def __init__(self, http: httpx.AsyncClient, url: str, operator_token: str | None = None) -> None:
        self.url = url
        self.operator_token = operator_token
        self._http = http
        self._has_responded = False

    async def get(self, path: str, schema: type[T], **query: str | int | bool | None) -> T:
        return self.decode(await self.send("GET", path, query=query), schema)

    async def post(
        self, path: str, schema: type[T], body: object = None, **query: str | int | bool | None
    ) -> T:
        return self.decode(await self.send("POST", path, body=body, query=query), schema)

    async def items(
        self, path: str, schema: type[T], items_max: int, **query: str | int | bool | None
    ) -> AsyncIterator[T]:
        """Items of a list. Requests a further page only when the caller iterates to it."""
        cursor: str | None = None
        while items_max > 0:
            page = await self.get(path, Page[schema], **query, limit=min(items_max, PAGE_MAX), cursor=cursor)
            for item in page.items:
                yield item
            items_max -= len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    def decode(self, response: httpx.Response, schema: type[T]) -> T:
        try:
            return msgspec.json.decode(response.content, type=schema)
        except msgspec.DecodeError as error:
            raise NotAnOsliraServer(self.url, str(error)) from None

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Returns a success or 304; raises ApiProblem, ServerUnreachable or NotAnOsliraServer."""
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        content = b"" if body is None else msgspec.json.encode(body)
        request = self._http.build_request(method, path, params=parameters, content=content, headers=headers)
        if content:
            request.headers["Content-Type"] = "application/json"
        if method == "POST":
            request.headers.setdefault("Idempotency-Key", str(uuid4()))
        if self.operator_token and path.startswith(ADMIN_PATH):
            request.headers["Authorization"] = f"Bearer {self.operator_token}"
            request.headers.pop(ACCOUNT_HEADER, None)
        response = await self._send_with_retries(request)
        if response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED:
            return response
        raise ApiProblem(response.status_code, _problem(response))

    async def _send_with_retries(self, request: httpx.Request) -> httpx.Response:
        """Retries after the delay that the server requests, for RETRY_TIMEOUT_S in total."""
        loop = asyncio.get_running_loop()
        until = loop.time() + RETRY_TIMEOUT_S
        backoff_s = BACKOFF_S
        while True:
            response = await self._send_once(request)
            wait_s = backoff_s if response is None else _retry_after_s(response)
            if wait_s is None or loop.time() + wait_s > until:
                if response is None:
                    raise ServerUnreachable(self.url)
                return response
            await asyncio.sleep(wait_s)
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)

    async def _send_once(self, request: httpx.Request) -> httpx.Response | None:
        """Returns None if the response was lost."""
        try:
            response = await self._http.send(request)
        except httpx.UnsupportedProtocol:
            raise ServerUnreachable(self.url) from None
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if not self._has_responded:
                raise ServerUnreachable(self.url) from None
            return None
        except httpx.TransportError:
            return None
        self._has_responded = True
        return response


@asynccontextmanager
async def open_api(
    url: str, token: str, *, account: str | None = None, operator_token: str | None = None
) -> AsyncGenerator[Api]:
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "oslira-command-line"}
    if account:
        headers[ACCOUNT_HEADER] = account
    try:
        http = httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUTS)
    except httpx.InvalidURL:
        raise ServerUnreachable(url) from None
    async with http:
        yield Api(http, url, operator_token)


def poll_interval_s(response: httpx.Response, default_s: float) -> float:
    wait_s = retry_after_s(response.headers.get("retry-after"))
    return default_s if wait_s is None else wait_s


def _retry_after_s(response: httpx.Response) -> float | None:
    """Returns None if the response is final."""
    is_in_flight = response.status_code == HTTPStatus.CONFLICT and _problem(response).code == IN_FLIGHT
    if response.status_code in RETRIED_STATUSES or is_in_flight:
        return poll_interval_s(response, 1.0)
    return None


def _problem(response: httpx.Response) -> Problem:
    try:
        return msgspec.json.decode(response.content, type=Problem)
    except msgspec.DecodeError:
        return Problem()
