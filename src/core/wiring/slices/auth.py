"""Identity and access: signing keys, authentication, accounts, members, invitations, API keys."""

import asyncio
from datetime import timedelta
from functools import partial

from core.api.health import HealthCheck
from core.api.health_checks import check_invitations, check_signing_keys, one_signing_key
from core.settings.settings import InvalidSettings, Settings, read_settings
from core.wiring.bootstrap import local_issuer
from core.wiring.slice import ApiParts, Resources, Slice
from features.auth.application.accounts import Accounts, CurrentUser
from features.auth.application.api_keys import ApiKeys
from features.auth.application.authentication import Authenticator
from features.auth.application.invitations import Invitations
from features.auth.application.members import Members
from features.auth.application.ports import InvitationMail
from features.auth.controllers.accounts import AccountsController, IdentityController
from features.auth.controllers.api_keys import ApiKeysController
from features.auth.controllers.members import InvitationsController, MembersController
from features.operations.domain.retention import ACCOUNTS_PER_BATCH, RetentionRule
from infrastructure.database.auth.accounts import (
    PostgresAccounts,
    PostgresMembers,
    PostgresMemberships,
    PostgresSignUps,
)
from infrastructure.database.auth.api_keys import PostgresApiKeyLookup, PostgresApiKeys
from infrastructure.database.auth.invitations import PostgresInvitations
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.keys import FixedKey, KeyInvalid, Keys, load_pem
from infrastructure.identity.supabase_mail import NoInvitationMail, SupabaseInvitationMail, SupabaseProject
from infrastructure.identity.verifier import JwtVerifier
from shared.clock import utc_now
from simulators.app import OUTBOX
from simulators.supabase import SERVICE_ROLE_KEY

KEY_KINDS = {"ES256": "an ES256 (P-256) key", "RS256": "an RS256 key of 2048 bits or more"}


def _api(resources: Resources) -> ApiParts:
    settings, database = resources.runtime.settings, resources.database
    keys, mail = _signing_keys(resources), _invitation_mail(resources)
    memberships, accounts = PostgresMemberships(database), PostgresAccounts(database)
    members, invitations = PostgresMembers(database), PostgresInvitations(database)
    api_keys = PostgresApiKeys(database)
    return ApiParts(
        dependencies={
            "authenticator": _authenticator(resources, keys, memberships),
            "current_user": CurrentUser(memberships, accounts),
            "accounts": Accounts(accounts),
            "members": Members(members, invitations, api_keys),
            "invitations": Invitations(invitations, members, accounts, mail, settings.frontend_url, utc_now),
            "api_keys": ApiKeys(api_keys, members, utc_now),
        },
        health_checks=_health_checks(settings, keys, mail),
    )


def _authenticator(resources: Resources, keys: Keys, memberships: PostgresMemberships) -> Authenticator:
    settings, database = resources.runtime.settings, resources.database
    identity = settings.identity
    verifier = JwtVerifier(
        keys, algorithm=identity.algorithm, issuer=identity.issuer, audience=identity.audience
    )
    api_keys = PostgresApiKeyLookup(database)
    resources.closing.push_async_callback(api_keys.close)
    sign_ups = PostgresSignUps(database)
    return Authenticator(verifier, sign_ups, api_keys, memberships, settings.signup_bonus_credits, utc_now)


def _signing_keys(resources: Resources) -> Keys:
    """Returns the keys of the configured source, or the local issuer's if none is configured."""
    settings = resources.runtime.settings
    identity = settings.identity
    if identity.algorithm == "HS256":
        return FixedKey(identity.secret.encode())
    if identity.jwks_url:
        keys = JwksKeys(identity.jwks_url, identity.algorithm)
        resources.closing.push_async_callback(keys.close)
        return keys
    try:
        return FixedKey(
            load_pem(identity.public_key or local_issuer(settings).public_key, identity.algorithm)
        )
    except KeyInvalid:
        kind = KEY_KINDS[identity.algorithm]
        error = f"OSLIRA_JWT_PUBLIC_KEY is not the public half of {kind} in PEM."
        raise InvalidSettings(settings.environment, [error]) from None


def _invitation_mail(resources: Resources) -> InvitationMail:
    """Returns Supabase's mail; in a local environment without Supabase, a simulator that starts with the
    first invitation.
    """
    runtime, simulators = resources.runtime, resources.simulators
    identity = runtime.settings.identity

    async def real() -> SupabaseProject:
        """Reads the settings for each invitation, because the key may have been rotated."""
        current = identity
        if runtime.secrets is not None:
            current = (await asyncio.to_thread(read_settings, runtime.lookup)).identity
        return SupabaseProject(url=current.supabase_url, service_role_key=current.service_role_key)

    async def simulated() -> SupabaseProject:
        return SupabaseProject(url=await simulators.address(), service_role_key=SERVICE_ROLE_KEY)

    if not identity.supabase_url and not runtime.settings.is_local:
        return NoInvitationMail()
    mail = SupabaseInvitationMail(real if identity.supabase_url else simulated)
    resources.closing.push_async_callback(mail.close)
    return mail


def _health_checks(settings: Settings, keys: Keys, mail: InvitationMail) -> dict[str, HealthCheck]:
    identity = settings.identity
    is_simulated = settings.is_local and not identity.supabase_url
    sent_by = mail if isinstance(mail, SupabaseInvitationMail) else None
    return {
        "identity": HealthCheck(
            "local" if identity.signs_locally else "real",
            partial(check_signing_keys, identity.algorithm, keys)
            if isinstance(keys, JwksKeys)
            else partial(one_signing_key, identity.algorithm),
        ),
        "supabase": HealthCheck(
            "simulated" if is_simulated else "real",
            partial(check_invitations, sent_by, OUTBOX, is_simulated=is_simulated),
        ),
    }


AUTH = Slice(
    name="auth",
    controllers=(
        IdentityController,
        AccountsController,
        MembersController,
        InvitationsController,
        ApiKeysController,
    ),
    retention={"daily-cleanup": (RetentionRule("public.accounts", timedelta(days=30), ACCOUNTS_PER_BATCH),)},
    api=_api,
)
