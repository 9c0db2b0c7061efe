"""API client of the commands: readable problems, and safe retries of lost responses."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TypeVar
from uuid import uuid4

import click
import httpx
import msgspec

from shared.retry_after import retry_after_s
from shared.text import plain

T = TypeVar("T")
Parameters = Mapping[str, str | int | bool]

# The read timeout is longer than the server holds a long poll.
TIMEOUTS = httpx.Timeout(40.0, connect=10.0)
PATIENCE_S = 60.0
PAUSE_S, PAUSE_S_MAX = 0.2, 2.0
IN_FLIGHT = "idempotency_key_in_flight"
REPEATED_STATUSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class FieldProblem(msgspec.Struct, frozen=True):
    field: str = ""
    message: str = ""


class Problem(msgspec.Struct, frozen=True):
    """Problem document of RFC 9457. Every field is optional, because a proxy may have sent the response."""

    code: str = ""
    detail: str = ""
    request_id: str = ""
    errors: list[FieldProblem] = []


class ApiProblem(click.ClickException):
    """The server's problem, shown with the server's own text."""

    def __init__(self, status: int, problem: Problem) -> None:
        self.status, self.code = status, problem.code
        said = plain(problem.detail) or f"The server answered {status}."
        known_by = [plain(problem.code)] if problem.code else []
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and problem.request_id:
            known_by.append(f"request {plain(problem.request_id)}")
        super().__init__(f"{said} ({', '.join(known_by)})" if known_by else said)


class ServerUnreachable(click.ClickException):
    def __init__(self, url: str) -> None:
        super().__init__(
            f"Nothing answers at {url}.\n"
            "Start the server with: oslira serve\n"
            "If it runs elsewhere, say where with --url, or set OSLIRA_PORT as it has it."
        )


class NotAnOsliraServer(click.ClickException):
    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"What answers at {url} is not Oslira, or another version of it ({plain(what)}).")


class Api:
    """Every POST carries an Idempotency-Key, so that it can be retried if its response was lost."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.url = url
        self._http = http
        self._is_met = False  # true after the first response

    async def get(self, path: str, answer: type[T], **parameters: str | int | bool | None) -> T:
        return self.decoded(await self.send("GET", path, parameters=_given(parameters)), answer)

    async def post(
        self, path: str, answer: type[T], body: object = None, **parameters: str | int | bool | None
    ) -> T:
        return self.decoded(await self.send("POST", path, body=body, parameters=_given(parameters)), answer)

    def decoded(self, response: httpx.Response, answer: type[T]) -> T:
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError as error:
            raise NotAnOsliraServer(self.url, str(error)) from None

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Returns a success or 304; raises ApiProblem, ServerUnreachable or NotAnOsliraServer."""
        sent = dict(headers or {})
        if method == "POST":
            sent["Idempotency-Key"] = str(uuid4())
        content = b"" if body is None else msgspec.json.encode(body)
        if content:
            sent["Content-Type"] = "application/json"
        request = self._http.build_request(method, path, params=parameters, content=content, headers=sent)
        response = await self._patiently(request)
        if response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED:
            return response
        raise ApiProblem(response.status_code, _problem(response))

    async def _patiently(self, request: httpx.Request) -> httpx.Response:
        """Retries after the delay that the server requests, for PATIENCE_S in total."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        pause_s = PAUSE_S
        while True:
            response = await self._once(request)
            wait_s = pause_s if response is None else _repeat_after_s(response)
            if wait_s is None or loop.time() + wait_s > until:
                if response is None:
                    raise ServerUnreachable(self.url)
                return response
            await asyncio.sleep(wait_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _once(self, request: httpx.Request) -> httpx.Response | None:
        """Returns None if the response was lost."""
        try:
            response = await self._http.send(request)
        except httpx.UnsupportedProtocol:
            raise ServerUnreachable(self.url) from None
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if not self._is_met:
                raise ServerUnreachable(self.url) from None
            return None
        except httpx.TransportError:
            return None
        self._is_met = True
        return response


@asynccontextmanager
async def open_api(url: str, token: str, account: str | None = None) -> AsyncGenerator[Api]:
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "oslira-command-line"}
    if account:
        headers["Oslira-Account"] = account
    try:
        http = httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUTS)
    except httpx.InvalidURL:
        raise ServerUnreachable(url) from None
    async with http:
        yield Api(http, url)


def pause_s(response: httpx.Response, default_s: float) -> float:
    wait_s = retry_after_s(response.headers.get("retry-after"))
    return default_s if wait_s is None else wait_s


def _repeat_after_s(response: httpx.Response) -> float | None:
    """Returns None if the response is final."""
    is_in_flight = response.status_code == HTTPStatus.CONFLICT and _problem(response).code == IN_FLIGHT
    if response.status_code in REPEATED_STATUSES or is_in_flight:
        return pause_s(response, 1.0)
    return None


def _problem(response: httpx.Response) -> Problem:
    try:
        return msgspec.json.decode(response.content, type=Problem)
    except msgspec.DecodeError:
        return Problem()


def _given(parameters: Mapping[str, str | int | bool | None]) -> Parameters:
    return {name: value for name, value in parameters.items() if value is not None}
