"""Data points: texts and numbers whose meaning depends on their kind."""

import math
import time
from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

import msgspec

from infrastructure.database.clients import Database
from infrastructure.database.durable_log import text
from infrastructure.database.write_behind import WriteBehindQueue
from shared.ids import AccountId, UserId
from shared.llm import CostOwner

ANALYSIS = "analysis"  # blobs: run, username, type, outcome; doubles: cost in dollars, duration in ms, score
PROFILE_CACHE = "profile_cache"  # blobs: username, reason, hit or miss; doubles: age in seconds

RECORD: LiteralString = """
insert into traffic.data_points (at, kind, account_id, user_id, blobs, doubles)
select to_timestamp(p.at_s), p.kind, p.account_id, p.user_id, p.blobs, p.doubles
from json_to_recordset($1::json) as p (
    at_s double precision, kind text, account_id uuid, user_id uuid, blobs text[],
    doubles double precision[]
)
"""


class _Point(msgspec.Struct, frozen=True):
    at_s: float
    kind: str
    account_id: AccountId | None
    user_id: UserId | None
    blobs: list[str]
    doubles: list[float | None]


class PostgresMetrics:
    def __init__(self, database: Database) -> None:
        self._session = database.admin("data points")
        self._points: WriteBehindQueue[_Point] = WriteBehindQueue("data points", self._write)

    def write(
        self,
        kind: str,
        *,
        blobs: Sequence[str],
        doubles: Sequence[float | None],
        account_id: AccountId | None = None,
        user_id: UserId | None = None,
    ) -> None:
        """Returns at once and never fails. Numbers that are not finite are stored as null."""
        self._points.add(
            _Point(
                time.time(),
                text(kind),
                account_id,
                user_id,
                [text(blob) for blob in blobs],
                [one if one is not None and math.isfinite(one) else None for one in doubles],
            )
        )

    async def _write(self, points: list[_Point]) -> None:
        await self._session.fetch(RECORD, msgspec.json.encode(points).decode())

    async def close(self) -> None:
        await self._points.close()


class ProfileCacheMetrics:
    """Records hits and misses of the profile cache. Implements ``CacheRecord``."""

    def __init__(self, points: PostgresMetrics) -> None:
        self._points = points

    def __call__(
        self, *, is_hit: bool, reason: str, username: str, age_s: float | None, cost_owner: CostOwner
    ) -> None:
        self._points.write(
            PROFILE_CACHE,
            blobs=(username, reason, "hit" if is_hit else "miss"),
            doubles=(age_s,),
            account_id=cost_owner.account_id,
            user_id=cost_owner.user_id,
        )


class AnalysisMetrics:
    """Records the result of an analysis. ``outcome`` is the run's status: completed, failed or cancelled."""

    def __init__(self, points: PostgresMetrics) -> None:
        self._points = points

    def __call__(
        self,
        *,
        run_id: UUID,
        username: str,
        analysis_type: str,
        outcome: str,
        cost_nanodollars: int | None,
        duration_ms: float,
        score: float | None,
        cost_owner: CostOwner,
    ) -> None:
        cost = None if cost_nanodollars is None else cost_nanodollars / 1_000_000_000
        self._points.write(
            ANALYSIS,
            blobs=(str(run_id), username, analysis_type, outcome),
            doubles=(cost, duration_ms, score),
            account_id=cost_owner.account_id,
            user_id=cost_owner.user_id,
        )
