"""Authentication and authorization of a request."""

import hmac
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import msgspec
from msgspec.structs import replace

from features.auth.application.ports import ApiKeyLookup, Memberships, SignUps, TokenVerifier
from features.auth.domain.api_keys import PREFIX, ApiKey, read_key
from features.auth.domain.claims import caller_of, read_claims
from features.auth.domain.errors import (
    AccountHeaderInvalid,
    ApiKeyInvalid,
    OperatorsOnly,
    PermissionMissing,
    ScopeMissing,
    TokenInvalid,
    UsersOnly,
)
from features.auth.domain.roles import ALLOWED, FOR_EVERY_ROLE, is_permission
from shared.caller import AccountNotFound, AuthContext, Caller, no_account
from shared.clock import Clock
from shared.errors import Unauthenticated, Unavailable
from shared.ids import UUID_TEXT, AccountId, UserId
from shared.permissions import Permission
from shared.ttl_cache import TtlCache

SCHEME = "bearer "
CREDENTIAL_LENGTH_MAX = 8_192
UNKNOWN_PLAN = "free"
# The plan and the account in a context are for rate limits and logs, which need no exact values.
USER_CACHED_FOR_S = 60.0
# Every process must reject a revoked key within five seconds.
API_KEY_CACHED_FOR_S = 4.0
CONTEXTS_MAX = 10_000

# Generation of the signing keys, Authorization, Oslira-Account.
CacheKey = tuple[int, bytes, bytes | None]


def _new_cache() -> TtlCache[CacheKey, AuthContext]:
    return TtlCache(CONTEXTS_MAX)


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Authentication and authorization for the middleware.

    A context is cached for a minute, that of an API key for four seconds, and never beyond the expiry of the
    credential. The role is not cached, so a role change takes effect at once.
    """

    verifier: TokenVerifier
    sign_ups: SignUps
    keys: ApiKeyLookup
    memberships: Memberships
    bonus_credits: int
    now: Clock
    contexts: TtlCache[CacheKey, AuthContext] = field(default_factory=_new_cache)

    async def authenticate(self, authorization: bytes, account: bytes | None) -> AuthContext:
        """Identify the caller from the values of Authorization and Oslira-Account.

        Raises Unauthenticated, AccountHeaderInvalid or AccountNotFound.
        """
        # A withdrawn signing key changes the generation and thereby invalidates all cached contexts.
        cache_key = (self.verifier.generation, authorization, account)
        context = self.contexts.get(cache_key)
        if context is None:
            caller, ttl_s = await self._identify(_credential(authorization))
            if account is not None:
                caller = _for_account(caller, account)
            membership = await self.memberships.find(caller)
            context = AuthContext(
                caller=caller,
                account_id=membership.account_id if membership else None,
                plan=membership.plan if membership else UNKNOWN_PLAN,
                rate_limit_key=caller.actor,
            )
            self.contexts.set(cache_key, context, ttl_s=ttl_s)
        return context

    async def is_operator(self, authorization: bytes) -> bool:
        """Return whether the token is valid and belongs to an operator. Works while the database is down."""
        try:
            verified = await self.verifier.verify(_credential(authorization))
            return caller_of(*read_claims(verified)).is_operator
        except (Unauthenticated, Unavailable):
            return False

    async def authorize(self, caller: Caller, access: str, account_id: AccountId | None) -> Caller:
        """Authorize the caller and return it with its account. Raises Forbidden or NotFound.

        ``access`` is the route's policy and ``account_id`` the account in its path.
        """
        if is_permission(access):
            return await self._require(access, caller, account_id)
        if access == "users_only" and caller.kind != "user":
            raise UsersOnly
        if access == "operators_only" and not caller.is_operator:
            raise OperatorsOnly
        assert access in ("signed_in", "users_only", "operators_only"), "unknown route policy"
        return caller

    async def _require(self, permission: Permission, caller: Caller, account_id: AccountId | None) -> Caller:
        if caller.scopes is not None:
            if account_id is not None and account_id != caller.chosen_account:
                raise AccountNotFound
            if permission not in caller.scopes:
                raise ScopeMissing(permission=permission)
            return caller
        if account_id is not None:
            caller = replace(caller, chosen_account=account_id)
        if permission in FOR_EVERY_ROLE:
            return caller
        membership = await self.memberships.find(caller)
        if membership is None or membership.role is None:
            raise no_account(caller)
        if membership.role not in ALLOWED[permission]:
            raise PermissionMissing(permission=permission, role=membership.role)
        return replace(caller, chosen_account=membership.account_id)

    async def _identify(self, credential: str) -> tuple[Caller, float]:
        """Return the caller and the number of seconds for which it may be cached."""
        if credential.startswith(PREFIX):
            key = await self._verify_key(credential)
            return _caller_with(key), self._ttl_s(API_KEY_CACHED_FOR_S, key.expires_at)
        claims, text = read_claims(await self.verifier.verify(credential))
        caller = caller_of(claims, text)
        await self.sign_ups.sign_up_if_new(
            UserId(caller.id),
            email=caller.email,
            account_name=claims.account_name,
            bonus_credits=self.bonus_credits,
        )
        return caller, self._ttl_s(USER_CACHED_FOR_S, claims.expires_at)

    async def _verify_key(self, text: str) -> ApiKey:
        presented = read_key(text)
        stored = await self.keys.find(presented.id)
        if stored is None or not hmac.compare_digest(stored.secret_hash, presented.secret_hash):
            raise ApiKeyInvalid
        now = self.now()
        if stored.key.mode != presented.mode or not stored.key.is_valid(now):
            raise ApiKeyInvalid
        self.keys.record_use(stored.key, now)
        return stored.key

    def _ttl_s(self, ttl_s: float, expires_at: datetime | None) -> float:
        return ttl_s if expires_at is None else min(ttl_s, (expires_at - self.now()).total_seconds())


def _credential(authorization: bytes) -> str:
    text = authorization.decode("latin-1")
    if len(text) > CREDENTIAL_LENGTH_MAX or not text.lower().startswith(SCHEME):
        raise TokenInvalid
    return text[len(SCHEME) :].strip()


def _for_account(caller: Caller, header: bytes) -> Caller:
    text = header.decode("latin-1")
    if not UUID_TEXT.fullmatch(text):
        raise AccountHeaderInvalid
    account_id = AccountId(UUID(text))
    if caller.kind == "user":
        return replace(caller, chosen_account=account_id)
    if account_id != caller.chosen_account:  # a key belongs to exactly one account
        raise AccountNotFound
    return caller


def _caller_with(key: ApiKey) -> Caller:
    claims = {"role": "authenticated", "api_key_id": str(key.id)}
    return Caller(
        kind="api_key",
        id=key.id,
        claims=msgspec.json.encode(claims).decode(),
        chosen_account=key.account_id,
        scopes=frozenset(key.scopes),
        project=key.project,
        is_test=key.mode == "test",
    )
