from dataclasses import dataclass, field
from datetime import datetime, timedelta

from features.auth.application.ports import SignUps, TokenVerifier
from features.auth.domain.claims import caller_of, read_claims
from features.auth.domain.errors import TokenInvalid
from shared.caller import Caller
from shared.ports import Clock

SCHEME = "bearer "
TOKEN_LENGTH_MAX = 8_192
REMEMBERED_FOR = timedelta(seconds=60)
REMEMBERED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Callers:
    """From an Authorization header to a caller. A verified header is remembered for a minute at most,
    so a signature is checked, and a new user signed up, once and not per request.
    """

    verifier: TokenVerifier
    sign_ups: SignUps
    bonus_credits: int
    now: Clock
    _known: dict[str, tuple[Caller, datetime]] = field(default_factory=dict, init=False)

    async def identify(self, authorization: str) -> Caller:
        known = self._known.get(authorization)
        if known is not None:
            caller, until = known
            if self.now() < until:
                return caller
            del self._known[authorization]
        return await self._verify(authorization)

    async def _verify(self, authorization: str) -> Caller:
        if len(authorization) > TOKEN_LENGTH_MAX or not authorization.lower().startswith(SCHEME):
            raise TokenInvalid
        verified = await self.verifier.verify(authorization[len(SCHEME) :].strip())
        claims, text = read_claims(verified)
        caller = caller_of(claims, text)
        await self.sign_ups.first_sight(
            caller.user_id, account_name=claims.account_name, bonus_credits=self.bonus_credits
        )
        if len(self._known) >= REMEMBERED_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[authorization] = (caller, min(claims.expires_at, self.now() + REMEMBERED_FOR))
        return caller
