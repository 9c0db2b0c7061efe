from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from features.analysis.application.ports import (
    AnalysisQuotaReader,
    AnalysisRuns,
    BulkReader,
    Prices,
    StartedRun,
)
from features.analysis.application.start_analysis import payer_of
from features.analysis.domain.bulk import BulkPage, Checked, checked
from features.analysis.domain.errors import BulkAnalysisNotFound, BulkTooLarge, NothingToAnalyse
from features.analysis.domain.requests import NewBulkAnalysis
from shared.caller import Caller
from shared.ids import AnalysisType, BusinessProfileId, RunId
from shared.pagination import decode_position, encode_position


class BulkRows(msgspec.Struct, frozen=True, kw_only=True):
    analysis_type: AnalysisType
    business_profile_id: BusinessProfileId
    is_fresh: bool
    usernames: Sequence[str]  # as sent, not yet validated


class BulkReport(msgspec.Struct, frozen=True, kw_only=True):
    """``credits_estimate`` is the cost if every row is analysed. Credits for the first row are enough to
    start: the run pauses when it cannot pay for the next row, and resumes when it can.
    """

    order: NewBulkAnalysis
    rows: Checked
    credits_each: int
    credits_estimate: int
    credits_available: int


@dataclass(frozen=True, slots=True)
class StartBulk:
    runs: AnalysisRuns
    terms: AnalysisQuotaReader
    prices: Prices
    reader: BulkReader

    async def report(self, caller: Caller, wish: BulkRows) -> BulkReport:
        """Raises BulkTooLarge, and NothingToAnalyse when every row is rejected."""
        terms = await self.terms.terms(caller, wish.business_profile_id)
        if len(wish.usernames) > terms.bulk_max:
            raise BulkTooLarge(limit=terms.bulk_max, plan=terms.plan)
        rows = checked(wish.usernames)
        if not rows.usernames:
            first = rows.rejections[0]
            raise NothingToAnalyse(
                rejected_count=len(rows.rejections), first_code=first.code, first_reason=first.reason
            )
        credits_each = await self.prices.credits(wish.analysis_type)
        return BulkReport(
            order=NewBulkAnalysis(
                analysis_type=wish.analysis_type,
                business_profile_id=wish.business_profile_id,
                is_fresh=wish.is_fresh,
                count=len(rows.usernames),
            ),
            rows=rows,
            credits_each=credits_each,
            credits_estimate=len(rows.usernames) * credits_each,
            credits_available=terms.credits_available,
        )

    async def start(self, caller: Caller, run_id: RunId, wish: BulkRows) -> tuple[StartedRun, BulkReport]:
        """Idempotent by ``run_id``. Raises InsufficientCredits when the first row cannot be paid."""
        payer = payer_of(caller)
        report = await self.report(caller, wish)
        started = await self.runs.start_bulk(
            run_id, payer, report.order, report.rows, credits_each=report.credits_each
        )
        return started, report

    async def page(
        self, caller: Caller, run_id: RunId, *, cursor: str | None, limit: int
    ) -> tuple[BulkPage, str | None]:
        """Returns the page and the cursor of the next page."""
        after = decode_position(cursor) if cursor is not None else 0
        page = await self.reader.page(caller, run_id, after_position=after, items_max=limit + 1)
        if page is None:
            raise BulkAnalysisNotFound
        if len(page.items) <= limit:
            return page, None
        items = page.items[:limit]
        return msgspec.structs.replace(page, items=items), encode_position(items[-1].position)
