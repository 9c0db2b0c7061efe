"""Idempotency keys: a POST repeated with the same key and body has one effect and one response."""

import asyncio
import hashlib
import hmac
import os
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, Protocol
from uuid import UUID, uuid4

import msgspec
import structlog
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from litestar.types import (
    ASGIApp,
    HTTPReceiveMessage,
    HTTPScope,
    Message,
    Receive,
    Scope,
    Send,
    WebSocketReceiveMessage,
)

from shared.caller import Caller
from shared.errors import Conflict, Invalid, Unavailable

HEADER = b"idempotency-key"
# Too long to guess for a reader of the database.
KEY_PATTERN = "^[!-~]{16,255}$"
# A handler is stopped before its lock expires, so no other attempt takes over its key while it runs.
LOCK_S = 30.0
WORK_S_MAX = 25.0
RETENTION_S = 24 * 3_600.0
WAIT_S_MAX = 3.0
WAIT_INTERVAL_S = 0.03
NONCE_LENGTH = 12
# Statuses that depend on the moment, not on the request.
NOT_STORED = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
)

_EFFECT_ID = "effect_id"
Received = HTTPReceiveMessage | WebSocketReceiveMessage

log: structlog.stdlib.BoundLogger = structlog.get_logger("idempotency")


def effect_id(scope: Scope) -> UUID:
    """Return the id for the object that this request creates, the same for all attempts with one
    Idempotency-Key.

    Insert with this id and return the existing row on conflict: a retry then continues an interrupted attempt
    instead of repeating its effect.
    """
    return scope["state"].get(_EFFECT_ID) or uuid4()


class StartedAttempt(msgspec.Struct, frozen=True):
    outcome: Literal["acquired", "completed", "in_flight", "mismatched"]
    effect_id: UUID | None = None  # for "acquired": shared by all attempts with the key
    response: bytes | None = None  # for "completed"


class IdempotencyKeys(Protocol):
    async def begin(self, key_id: bytes, fingerprint: bytes, attempt: UUID) -> StartedAttempt: ...

    async def finish(self, key_id: bytes, attempt: UUID, response: bytes) -> None: ...

    async def abandon(self, key_id: bytes, attempt: UUID) -> None:
        """Release the lock, so that the next attempt continues this one without waiting."""
        ...


class KeyInvalid(Invalid):
    code = "idempotency_key_invalid"
    text = "An Idempotency-Key is 16 to 255 visible ASCII characters, a new UUID for example."


class KeyReused(Invalid):
    code = "idempotency_key_reused"
    text = "This Idempotency-Key was used for another request. Use a new key for a new request."


class KeyInFlight(Conflict):
    code = "idempotency_key_in_flight"
    text = "A request with this Idempotency-Key is still under way. Try again in a moment."
    retry_after_s = 1


class TookTooLong(Unavailable):
    code = "request_took_too_long"
    text = "This took too long. Try again with the same Idempotency-Key: nothing is done twice."


class _StoredResponse(msgspec.Struct, array_like=True):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(frozen=True, slots=True)
class Idempotency:
    attempts: IdempotencyKeys

    async def run(
        self, app: ASGIApp, scope: HTTPScope, receive: Receive, send: Send, *, caller: Caller, key: bytes
    ) -> None:
        if not re.fullmatch(KEY_PATTERN, key.decode("latin-1")):
            raise KeyInvalid
        key_id = hashlib.sha256(caller.actor.encode() + b"\0" + key).digest()
        body = await receive()  # one message: RequestPipeline has read the whole body
        attempt = uuid4()
        begun = await self._begin(key_id, _fingerprint(scope, caller, body.get("body", b"")), attempt)
        if begun.response is not None:
            response = _opened(begun.response, key, key_id)
            response.headers.append((b"idempotency-replayed", b"true"))
            await _send(send, response)
            return
        scope["state"][_EFFECT_ID] = begun.effect_id
        work = _Work(app, scope, replayed(body, receive))
        try:
            response = await work.done()
        except BaseException:
            await asyncio.shield(self.attempts.abandon(key_id, attempt))
            raise
        await self._store(response, key, key_id, attempt)
        await _send(send, response)

    async def _begin(self, key_id: bytes, fingerprint: bytes, attempt: UUID) -> StartedAttempt:
        """Start the attempt. A concurrent attempt waits up to WAIT_S_MAX for the response of the first."""
        loop = asyncio.get_running_loop()
        until = loop.time() + WAIT_S_MAX
        while True:
            begun = await self.attempts.begin(key_id, fingerprint, attempt)
            if begun.outcome == "mismatched":
                raise KeyReused
            if begun.outcome != "in_flight":
                return begun
            if loop.time() > until:
                raise KeyInFlight
            await asyncio.sleep(WAIT_INTERVAL_S)

    async def _store(self, response: _StoredResponse, key: bytes, key_id: bytes, attempt: UUID) -> None:
        try:
            if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status in NOT_STORED:
                await self.attempts.abandon(key_id, attempt)
            else:
                await self.attempts.finish(key_id, attempt, _sealed(response, key, key_id))
        except Unavailable as error:
            # The effect is complete; a retry continues with the same id.
            log.warning("response_not_stored", cause=repr(error))


class _Work:
    """One run of the handler whose response is captured instead of sent."""

    def __init__(self, app: ASGIApp, scope: HTTPScope, receive: Receive) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._response = _StoredResponse(0, [], b"")

    async def done(self) -> _StoredResponse:
        try:
            async with asyncio.timeout(WORK_S_MAX):
                await self._app(self._scope, self._receive, self._catch)
        except TimeoutError:
            raise TookTooLong from None
        return self._response

    async def _catch(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._response.status = message["status"]
            self._response.headers = list(message["headers"])
        elif message["type"] == "http.response.body":
            self._response.body += message["body"]


def _fingerprint(scope: HTTPScope, caller: Caller, body: bytes) -> bytes:
    parts = (scope["method"], scope["path"], scope["query_string"].decode("latin-1"), caller.chosen_account)
    return hashlib.sha256(f"{parts}\0".encode() + body).digest()


def _cipher(key: bytes) -> AESGCM:
    return AESGCM(hmac.digest(key, b"oslira stored response", "sha256"))


def _sealed(response: _StoredResponse, key: bytes, key_id: bytes) -> bytes:
    """Encrypt with the key, of which the database stores only the hash, so it cannot read the response."""
    nonce = os.urandom(NONCE_LENGTH)
    return nonce + _cipher(key).encrypt(nonce, msgspec.msgpack.encode(response), key_id)


def _opened(sealed: bytes, key: bytes, key_id: bytes) -> _StoredResponse:
    plain = _cipher(key).decrypt(sealed[:NONCE_LENGTH], sealed[NONCE_LENGTH:], key_id)
    return msgspec.msgpack.decode(plain, type=_StoredResponse)


def replayed(body: Received, receive: Receive) -> Receive:
    """Return a ``receive`` that delivers the message again."""
    waiting = [body]

    async def replay() -> Received:
        return waiting.pop() if waiting else await receive()

    return replay


async def _send(send: Send, response: _StoredResponse) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})
