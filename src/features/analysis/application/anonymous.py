"""Light analyses without an account. Only the holder of the token can read the result."""

import hashlib
import secrets
from dataclasses import dataclass
from uuid import uuid4

from features.analysis.application.ports import AnonymousAnalysis, AnonymousResults, AnonymousRun
from features.analysis.domain.errors import AnonymousAnalysisNotFound
from features.analysis.domain.profile.profile import username_of
from features.analysis.domain.requests import NewAnalysis
from shared.ids import RunId

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class AnonymousAnalyses:
    results: AnonymousResults

    async def start(self, username: str) -> tuple[AnonymousRun, str]:
        """Returns the run and its token. The token is shown only here, because only its hash is stored."""
        order = NewAnalysis(username=username_of(username), analysis_type="light", business_profile_id=None)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        started = await self.results.start(RunId(uuid4()), order, token_hash=_hash(token))
        return started, token

    async def get(self, token: str) -> AnonymousAnalysis:
        found = await self.results.find(_hash(token))
        if found is None:
            raise AnonymousAnalysisNotFound
        return found


def _hash(token: str) -> bytes:
    # The token comes from a URL and may contain any text; our own tokens are ASCII.
    return hashlib.sha256(token.encode(errors="replace")).digest()
