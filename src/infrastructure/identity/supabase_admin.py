"""Supabase Auth client with the service role. Importing its SDK takes a second, so import it lazily."""

import httpx
from supabase import AsyncClient, AsyncClientOptions, AuthApiError

from infrastructure.tls import default_ssl_context

KNOWN_USER = frozenset({"email_exists", "user_already_exists"})


class SupabaseAdmin:
    """Client that is used only with the service role.

    A client that signs a user in sends that user's token with all later requests.
    """

    def __init__(self, url: str, service_role_key: str, *, timeout_s: float) -> None:
        self._http = httpx.AsyncClient(
            verify=default_ssl_context(), timeout=timeout_s, follow_redirects=False
        )
        options = AsyncClientOptions(
            auto_refresh_token=False,
            persist_session=False,
            # The invited user opens the link in a browser, which does not have our PKCE verifier.
            flow_type="implicit",
            httpx_client=self._http,
        )
        self._auth = AsyncClient(url, service_role_key, options).auth

    async def invite(self, email: str, *, link: str, data: dict[str, str]) -> None:
        """Invite a user, or send a sign-in link to an existing one. Raises errors of the SDK, httpx and
        pydantic.
        """
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
