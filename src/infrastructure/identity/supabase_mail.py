"""Invitation mails sent by Supabase Auth."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import structlog

from features.auth.application.ports import InvitationMail
from features.auth.domain.errors import InvitationNotSent

TIMEOUT_S = 10.0
# The address is wrong, so the service still counts as healthy.
ADDRESS_REFUSED = frozenset({400, 422})
CODE = re.compile(r"[a-z_]{1,40}")

log: structlog.stdlib.BoundLogger = structlog.get_logger("invitations")


class SupabaseProject(msgspec.Struct, frozen=True, kw_only=True):
    """URL of the project and its service role key, which has all rights."""

    url: str
    service_role_key: str

    def __repr__(self) -> str:
        return f"SupabaseProject(url={self.url!r})"


class _Admin(Protocol):
    """Interface of SupabaseAdmin, whose module is imported on first use."""

    async def invite(self, email: str, *, link: str, data: dict[str, str]) -> None: ...

    async def close(self) -> None: ...


class SupabaseInvitationMail(InvitationMail):
    """Creates its client at the first invitation and again when the URL or the key changes."""

    def __init__(
        self, access: Callable[[], Awaitable[SupabaseProject]], *, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._made: tuple[SupabaseProject, _Admin] | None = None
        self._making = asyncio.Lock()
        self.failure: str | None = None  # reason of the last failure of the service, for the health check

    async def send(self, email: str, *, link: str, account_name: str, inviter: str) -> None:
        try:
            admin = await self._admin()
            async with asyncio.timeout(self._timeout_s):
                await admin.invite(email, link=link, data={"account_name": account_name, "inviter": inviter})
        except Exception as error:  # noqa: BLE001  the SDK raises its own, httpx's, pydantic's and more
            self._note(error)
            # Without cause and text, because they may contain the key or the link.
            raise InvitationNotSent from None
        self.failure = None

    async def close(self) -> None:
        if self._made is not None:
            await self._made[1].close()
            self._made = None

    async def _admin(self) -> _Admin:
        access = await self._access()
        async with self._making:
            if self._made is not None and self._made[0] == access:
                return self._made[1]
            await self.close()
            admin = await asyncio.to_thread(_make, access, self._timeout_s)
            self._made = (access, admin)
            return admin

    def _note(self, error: Exception) -> None:
        status = getattr(error, "status", None)
        code = getattr(error, "code", None)
        reason = code if isinstance(code, str) and CODE.fullmatch(code) else type(error).__name__
        log.warning("invitation_not_sent", reason=reason, status=status)
        if status not in ADDRESS_REFUSED:
            self.failure = f"{reason} ({status})" if status else reason


def _make(access: SupabaseProject, timeout_s: float) -> _Admin:
    from infrastructure.identity.supabase_admin import SupabaseAdmin  # noqa: PLC0415  takes a second

    return SupabaseAdmin(access.url, access.service_role_key, timeout_s=timeout_s)


class NoInvitationMail(InvitationMail):
    """Used when no mail service is configured. Raises InvitationNotSent."""

    async def send(self, email: str, *, link: str, account_name: str, inviter: str) -> None:  # noqa: ARG002  the port's
        log.warning("invitation_not_sent", reason="SUPABASE_URL is not set")
        raise InvitationNotSent
