"""Audit log of operator requests, stored durably before the request runs."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote
from uuid import UUID, uuid4

import msgspec
import structlog
from litestar.types import HTTPScope, Message, Receive, Send

from shared.caller import Caller
from shared.errors import Unavailable
from shared.http.problems import status_of
from shared.ids import AccountId, UserId
from shared.middleware.idempotency import replayed
from shared.middleware.request_context import context_of
from shared.middleware.request_id import current_request_id

PATH_LENGTH_MAX = 2_000
REASON_LENGTH_MAX = 500

Proceed = Callable[[HTTPScope, Receive, Send], Awaitable[None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("audit")


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    operator_id: UserId
    operation: str
    method: str
    path: str
    account_id: AccountId | None
    request_id: str
    body_sha256: bytes | None
    reason: str | None


class AuditLog(Protocol):
    async def begin(self, act: AuditEntry) -> None: ...

    async def end(self, act_id: UUID, *, status: int, code: str | None) -> None: ...


class _Reasoned(msgspec.Struct):
    """Fields of a request body that can contain the operator's reason."""

    reason: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRecorder:
    book: AuditLog

    async def run(
        self, proceed: Proceed, scope: HTTPScope, receive: Receive, send: Send, *, caller: Caller
    ) -> None:
        """Record the request, then run it. Reads are recorded too, unless the route is SHOWS_NO_TENANT.

        Raises Unavailable and does not run the request when the entry cannot be stored.
        """
        if scope["route_handler"].opt.get("shows_no_tenant"):
            await proceed(scope, receive, send)
            return
        body = b""
        if scope["method"] != "GET":
            message = await receive()  # one message: RequestPipeline has read the whole body
            body = message.get("body", b"")
            receive = replayed(message, receive)
        act = _act(scope, caller, body)
        await self.book.begin(act)
        status = 0

        async def send_and_see(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        code: str | None = None
        try:
            await proceed(scope, receive, send_and_see)
            code = context_of(scope).code
        except Exception as error:
            status, code = status_of(error)
            raise
        finally:
            if status:
                await asyncio.shield(self._end(act, status, code))

    async def _end(self, act: AuditEntry, status: int, code: str | None) -> None:
        try:
            await self.book.end(act.id, status=status, code=code)
        except Unavailable as error:
            # The stored entry shows that the request began; its status is in the log line.
            log.warning("audit_entry_not_completed", entry=str(act.id), status=status, cause=repr(error))


def _act(scope: HTTPScope, caller: Caller, body: bytes) -> AuditEntry:
    handler = scope["route_handler"]
    account_id = scope["path_params"].get("account_id")
    return AuditEntry(
        id=uuid4(),
        operator_id=caller.user_id,
        operation=str(getattr(handler, "operation_id", None) or handler),
        method=scope["method"],
        path=quote(scope["path"])[:PATH_LENGTH_MAX],
        account_id=AccountId(account_id) if isinstance(account_id, UUID) else None,
        request_id=current_request_id.get(),
        body_sha256=hashlib.sha256(body).digest() if body else None,
        reason=_reason(body),
    )


def _reason(body: bytes) -> str | None:
    """Return the reason if the body has one; the route validates the body."""
    try:
        said = msgspec.json.decode(body, type=_Reasoned)
    except msgspec.DecodeError:
        return None
    reason = said.reason or said.description
    return reason.replace("\0", " ")[:REASON_LENGTH_MAX] if reason else None
