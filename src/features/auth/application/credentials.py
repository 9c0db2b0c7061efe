import hmac
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from features.auth.application.ports import ApiKeyLookup, SignUps, TokenVerifier
from features.auth.domain.api_keys import PREFIX, ApiKey, read_key
from features.auth.domain.claims import caller_of, read_claims
from features.auth.domain.errors import ApiKeyInvalid, TokenInvalid
from shared.caller import Caller
from shared.clock import Clock
from shared.errors import Unauthenticated, Unavailable
from shared.ids import UserId

SCHEME = "bearer "
CREDENTIAL_LENGTH_MAX = 8_192
# Every process must reject a revoked key within five seconds.
KEY_REMEMBERED_FOR = timedelta(seconds=3)
REMEMBERED_MAX = 10_000


@dataclass(slots=True)
class Credentials:
    """Conversion of an Authorization header to a caller, with a cache.

    A verified token is cached until it expires, so its signature check and the sign-up of a new user happen
    once. A key is cached for a few seconds.
    """

    verifier: TokenVerifier
    sign_ups: SignUps
    keys: ApiKeyLookup
    bonus_credits: int
    now: Clock
    _known: dict[str, tuple[Caller, datetime]] = field(default_factory=dict, init=False)
    _generation: int = field(default=0, init=False)

    async def identify(self, authorization: str) -> Caller:
        if self._generation != self.verifier.generation:
            self._known.clear()
            self._generation = self.verifier.generation
        known = self._known.get(authorization)
        if known is not None:
            caller, until = known
            if self.now() < until:
                return caller
            del self._known[authorization]
        return await self._verify(authorization)

    async def is_operator(self, authorization: str) -> bool:
        """Return whether the token is valid and belongs to an operator. Works while the database is down."""
        if len(authorization) > CREDENTIAL_LENGTH_MAX or not authorization.lower().startswith(SCHEME):
            return False
        try:
            verified = await self.verifier.verify(authorization[len(SCHEME) :].strip())
            return caller_of(*read_claims(verified)).is_operator
        except (Unauthenticated, Unavailable):
            return False

    async def _verify(self, authorization: str) -> Caller:
        if len(authorization) > CREDENTIAL_LENGTH_MAX or not authorization.lower().startswith(SCHEME):
            raise TokenInvalid
        credential = authorization[len(SCHEME) :].strip()
        if credential.startswith(PREFIX):
            caller, until = await self._key(credential)
        else:
            caller, until = await self._user(credential)
        if len(self._known) >= REMEMBERED_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[authorization] = (caller, until)
        return caller

    async def _user(self, token: str) -> tuple[Caller, datetime]:
        claims, text = read_claims(await self.verifier.verify(token))
        caller = caller_of(claims, text)
        await self.sign_ups.first_sight(
            UserId(caller.id),
            email=caller.email,
            account_name=claims.account_name,
            bonus_credits=self.bonus_credits,
        )
        return caller, claims.expires_at

    async def _key(self, text: str) -> tuple[Caller, datetime]:
        presented = read_key(text)
        known = await self.keys.find(presented.id)
        now = self.now()
        if known is None or not hmac.compare_digest(known.secret_hash, presented.secret_hash):
            raise ApiKeyInvalid
        key = known.key
        if key.mode != presented.mode or not key.is_valid(now):
            raise ApiKeyInvalid
        self.keys.note_use(key, now)
        until = now + KEY_REMEMBERED_FOR
        return _caller_with(key), min(until, key.expires_at) if key.expires_at else until


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
