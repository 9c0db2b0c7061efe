"""Quotas, own fetches and bulk pages of the caller's account, read under row-level security."""

from typing import LiteralString

import msgspec

from features.analysis.application.ports import AnalysisQuotaReader, AnalysisQuotas, BulkReader, FetchReader
from features.analysis.domain.bulk import BulkPage, ItemStatus, PageItem, Rejection
from features.analysis.domain.eligibility import OwnFetch
from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.requests import NewAnalysis, NewBulkAnalysis
from features.analysis.domain.scoring.ideal_customer import IdealCustomer
from features.business.domain.errors import BusinessProfileNotFound
from infrastructure.database.clients import Database
from shared.caller import Caller, no_account
from shared.ids import BusinessProfileId, RunId

TERMS: LiteralString = "select * from caller.analysis_terms($1, $2, $3, $4)"
FETCHES: LiteralString = "select * from caller.profile_fetches($1, $2, $3, $4)"
POSITION_MAX = 2**31 - 1  # of the integer column; a cursor may hold a larger number
BULK: LiteralString = "select * from caller.bulk_analysis($1, $2, $3, $4, $5)"


class PostgresAnalysisQuotas(AnalysisQuotaReader, FetchReader, BulkReader):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def terms(
        self, caller: Caller, business_profile_id: BusinessProfileId, *, dedup_key: str | None = None
    ) -> AnalysisQuotas:
        (row,) = await self._database.user(caller.claims).call(
            TERMS, caller.chosen_account, business_profile_id, dedup_key
        )
        if row["account_id"] is None:
            raise no_account(caller)
        if row["business_profile_id"] is None:
            raise BusinessProfileNotFound
        hundredths: int | None = row["engagement_rate_min_hundredths"]
        customer = IdealCustomer(
            followers_min=row["followers_min"],
            followers_max=row["followers_max"],
            engagement_rate_min=None if hundredths is None else hundredths / 100,
        )
        return AnalysisQuotas(
            customer=customer,
            **{name: row[name] for name in AnalysisQuotas.__struct_fields__ if name != "customer"},
        )

    async def fetches(self, caller: Caller, order: NewAnalysis) -> list[OwnFetch]:
        rows = await self._database.user(caller.claims).call(
            FETCHES, caller.chosen_account, order.business_profile_id, order.username
        )
        return [
            OwnFetch(
                analysis_type=row["analysis_type"],
                outcome=row["outcome"],
                scraped_at=row["scraped_at"],
                facts=msgspec.json.decode(row["facts"], type=Facts) if row["facts"] else None,
            )
            for row in rows
        ]

    async def page(
        self, caller: Caller, run_id: RunId, *, after_position: int, items_max: int
    ) -> BulkPage | None:
        (row,) = await self._database.user(caller.claims).call(
            BULK, caller.chosen_account, run_id, min(after_position, POSITION_MAX), items_max
        )
        if row["account_id"] is None:
            raise no_account(caller)
        if row["run_id"] is None:
            return None
        return BulkPage(
            run_id=row["run_id"],
            status=row["status"],
            progress=row["progress"],
            current_step=row["current_step"],
            order=msgspec.json.decode(row["subject"], type=NewBulkAnalysis),
            created_at=row["created_at"],
            ended_at=row["ended_at"],
            counts=msgspec.json.decode(row["counts"] or "{}", type=dict[ItemStatus, int]),
            items=msgspec.json.decode(row["items"] or "[]", type=list[PageItem]),
            rejections=msgspec.json.decode(row["rejections"] or "[]", type=list[Rejection]),
        )
