"""Simulated Supabase Auth (GoTrue), as far as we use it: invitations, sign-in links, users, keys.

An invited person is a user at once, as if the address had been confirmed.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import structlog
from litestar import Request, Response, Router, delete, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery, JSONBody

from infrastructure.identity.tokens import LocalIssuer, user_id_of

log: structlog.stdlib.BoundLogger = structlog.get_logger("outbox")


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    to: str
    subject: str
    link: str
    at: datetime


class Outbox:
    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, to: str, *, subject: str, link: str) -> None:
        mail = Mail(to=to, subject=subject, link=link, at=datetime.now(UTC))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(mail) + b"\n")
        log.info("mail_stored", to=to, subject=subject, link=link)


PATH = "/auth/v1"
SERVICE_ROLE_KEY = "sb_secret_simulated_on_this_machine"  # valid for this simulator only
API_VERSION = {"X-Supabase-Api-Version": "2024-01-01"}

Email = Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[^@\s]+$", max_length=320)]


class GoTrueError(Exception):
    """Becomes a response in GoTrue's format: a status, a code and a text."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message


class InviteRequest(msgspec.Struct, frozen=True):
    email: Email
    data: dict[str, Any] | None = None


class OtpRequest(msgspec.Struct, frozen=True):
    email: Email
    create_user: bool = True


class SupabaseAuth:
    """Users of one simulated project, by e-mail address; lost when the process ends."""

    def __init__(self, issuer: LocalIssuer, outbox: Outbox) -> None:
        self.key_set = {"keys": [issuer.jwk]}
        self.users: dict[str, dict[str, Any]] = {}
        self._outbox = outbox

    def invite(self, email: str, *, link: str, data: dict[str, Any]) -> dict[str, Any]:
        if email in self.users:
            message = "A user with this email address has already been registered"
            raise GoTrueError(422, "email_exists", message)
        self._outbox.append(email, subject="You have been invited", link=link)
        return self._create(email, data)

    def send_link(self, email: str, *, link: str, create_user: bool) -> None:
        if email not in self.users:
            if not create_user:
                raise GoTrueError(422, "otp_disabled", "Signups not allowed for otp")
            self._create(email, {})
        self._outbox.append(email, subject="Your sign-in link", link=link)

    def remove(self, user_id: str) -> None:
        for email, user in self.users.items():
            if user["id"] == user_id:
                del self.users[email]
                return
        raise GoTrueError(404, "user_not_found", "User not found")

    def _create(self, email: str, data: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC)
        self.users[email] = {
            "id": str(user_id_of(email)),  # the same id as in local tokens
            "aud": "authenticated",
            "role": "authenticated",
            "email": email,
            "app_metadata": {"provider": "email", "providers": ["email"]},
            "user_metadata": data,
            "identities": [],
            "created_at": now,
            "updated_at": now,
            "invited_at": now,
            "is_anonymous": False,
        }
        return self.users[email]


def _has_key(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    key = connection.headers.get("apikey")
    if key != SERVICE_ROLE_KEY:
        message = "Invalid API key" if key else "No API key found in request"
        raise GoTrueError(401, "no_authorization", message)


def _is_service_role(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    _has_key(connection, handler)
    if connection.headers.get("authorization") != f"Bearer {SERVICE_ROLE_KEY}":
        raise GoTrueError(401, "no_authorization", "This endpoint requires a valid Bearer token")


@get("/.well-known/jwks.json", sync_to_thread=False)
def key_set(state: State) -> dict[str, Any]:
    return state.supabase.key_set


@post("/invite", guards=[_is_service_role], status_code=200, sync_to_thread=False)
def invite(data: JSONBody[InviteRequest], state: State, redirect_to: FromQuery[str] = "") -> dict[str, Any]:
    return state.supabase.invite(data.email.lower(), link=redirect_to, data=data.data or {})


@post("/otp", guards=[_has_key], status_code=200, sync_to_thread=False)
def one_time_link(
    data: JSONBody[OtpRequest], state: State, redirect_to: FromQuery[str] = ""
) -> dict[str, Any]:
    state.supabase.send_link(data.email.lower(), link=redirect_to, create_user=data.create_user)
    return {}


@get("/admin/users", guards=[_is_service_role], sync_to_thread=False)
def list_users(state: State, page: FromQuery[str] = "", per_page: FromQuery[str] = "") -> dict[str, Any]:
    users = list(state.supabase.users.values())
    length = int(per_page or 50)  # the SDK sends both, empty when it has no value
    start = (int(page or 1) - 1) * length
    return {"users": users[start : start + length], "aud": "authenticated"}


@delete("/admin/users/{user_id:str}", guards=[_is_service_role], status_code=200, sync_to_thread=False)
def delete_user(user_id: FromPath[str], state: State) -> dict[str, Any]:
    state.supabase.remove(user_id)
    return {}


def _error_response(_: Request[Any, Any, Any], error: GoTrueError) -> Response[dict[str, str]]:
    content = {"code": error.code, "message": error.message}
    return Response(content, status_code=error.status, headers=API_VERSION)


def _invalid_body_response(_: Request[Any, Any, Any], __: ValidationException) -> Response[dict[str, str]]:
    content = {"code": "validation_failed", "message": "Unable to validate the request"}
    return Response(content, status_code=400, headers=API_VERSION)


def supabase_router() -> Router:
    return Router(
        PATH,
        route_handlers=[key_set, invite, one_time_link, list_users, delete_user],
        exception_handlers={GoTrueError: _error_response, ValidationException: _invalid_body_response},
    )
