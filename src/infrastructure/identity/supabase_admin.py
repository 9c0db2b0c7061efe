"""Supabase Auth through its own SDK, as the service role. Importing this takes a second: do it late."""

import httpx
from supabase import AsyncClient, AsyncClientOptions, AuthApiError

from infrastructure.tls import default_ssl_context

KNOWN_USER = frozenset({"email_exists", "user_already_exists"})


class SupabaseAdmin:
    """A client of its own, of the service role alone: one that ever signed a user in would send that
    user's token from then on.
    """

    def __init__(self, url: str, service_role_key: str, *, timeout_s: float) -> None:
        self._http = httpx.AsyncClient(
            verify=default_ssl_context(), timeout=timeout_s, follow_redirects=False
        )
        options = AsyncClientOptions(
            auto_refresh_token=False,
            persist_session=False,
            # The link is opened in the invited person's browser, which holds no verifier of ours.
            flow_type="implicit",
            httpx_client=self._http,
        )
        self._auth = AsyncClient(url, service_role_key, options).auth

    async def invite(self, email: str, *, link: str, data: dict[str, str]) -> None:
        """Raises what the SDK raises: its own errors, httpx's, pydantic's."""
        try:
            await self._auth.admin.invite_user_by_email(email, {"redirect_to": link, "data": data})
        except AuthApiError as error:
            if error.code not in KNOWN_USER:
                raise
            await self._auth.sign_in_with_otp(
                {"email": email, "options": {"should_create_user": False, "email_redirect_to": link}}
            )

    async def close(self) -> None:
        await self._http.aclose()
