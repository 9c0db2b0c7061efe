"""Signing keys for access tokens, and the mail that sends invitations."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from core.settings.settings import InvalidSettings, Settings, read_settings
from core.wiring.bootstrap import Runtime, local_issuer
from features.auth.application.ports import InvitationMail
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.keys import FixedKey, KeyInvalid, Keys, load_pem
from infrastructure.identity.supabase_mail import NoInvitationMail, SupabaseInvitationMail, SupabaseProject
from simulators.supabase import SERVICE_ROLE_KEY
from simulators.supervisor import Simulators


@asynccontextmanager
async def signing_keys(settings: Settings) -> AsyncGenerator[Keys]:
    """Yields the keys of the configured source, or those of the local issuer if none is configured."""
    identity = settings.identity
    if identity.algorithm == "HS256":
        yield FixedKey(identity.secret.encode())
        return
    if identity.jwks_url:
        keys = JwksKeys(identity.jwks_url, identity.algorithm)
        try:
            yield keys
        finally:
            await keys.close()
        return
    try:
        key = load_pem(identity.public_key or local_issuer(settings).public_key, identity.algorithm)
    except KeyInvalid:
        kinds = {"ES256": "an ES256 (P-256) key", "RS256": "an RS256 key of 2048 bits or more"}
        wrong = f"OSLIRA_JWT_PUBLIC_KEY is not the public half of {kinds[identity.algorithm]} in PEM."
        raise InvalidSettings(settings.environment, [wrong]) from None
    yield FixedKey(key)


@asynccontextmanager
async def invitation_mail(place: Runtime, simulators: Simulators) -> AsyncGenerator[InvitationMail]:
    """Yields Supabase's mail; in a local environment without Supabase, a simulator that starts with the first
    invitation.
    """
    identity = place.settings.identity

    async def real() -> SupabaseProject:
        """Reads the settings for each invitation, because the key may have been rotated."""
        current = identity
        if place.secrets is not None:
            current = (await asyncio.to_thread(read_settings, place.lookup)).identity
        return SupabaseProject(url=current.supabase_url, service_role_key=current.service_role_key)

    async def simulated() -> SupabaseProject:
        return SupabaseProject(url=await simulators.address(), service_role_key=SERVICE_ROLE_KEY)

    if not identity.supabase_url and not place.settings.is_local:
        yield NoInvitationMail()
        return
    mail = SupabaseInvitationMail(real if identity.supabase_url else simulated)
    try:
        yield mail
    finally:
        await mail.close()
