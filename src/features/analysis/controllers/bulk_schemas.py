"""Response schemas of bulk analyses."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from features.analysis.application.ports import StartedRun
from features.analysis.application.start_bulk import BulkReport
from features.analysis.domain.bulk import BulkPage, ItemStatus, PageItem, Rejection
from shared.http.responses import struct_from
from shared.ids import AnalysisType


class RejectedResponse(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    username: str
    code: str
    reason: str


class BulkQuoteResponse(msgspec.Struct, frozen=True, kw_only=True):
    accepted_count: int
    rejected: list[RejectedResponse]
    credits_estimate: int
    credits_available: int


class BulkStartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: str
    poll_url: str
    accepted_count: int
    rejected: list[RejectedResponse]
    credits_estimate: int
    credits_available: int


class BulkCountsResponse(msgspec.Struct, frozen=True, kw_only=True):
    waiting: int
    started: int
    completed: int
    failed: int
    cancelled: int
    skipped: int


class BulkItemResponse(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    username: str
    status: ItemStatus
    outcome: str | None
    run_id: UUID | None
    analysis_url: str | None


class BulkResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: str
    progress: int
    current_step: str | None
    type: AnalysisType
    business_profile_id: UUID
    is_fresh: bool
    created_at: datetime
    ended_at: datetime | None
    counts: BulkCountsResponse
    items: list[BulkItemResponse]
    next_cursor: str | None
    rejected: list[RejectedResponse]


def bulk_quote_response(report: BulkReport) -> BulkQuoteResponse:
    return struct_from(BulkQuoteResponse, report, **_rows(report))


def bulk_started_response(started: StartedRun, report: BulkReport) -> BulkStartedResponse:
    return struct_from(
        BulkStartedResponse,
        report,
        run_id=started.run_id,
        status=started.status,
        poll_url=f"/v1/runs/{started.run_id}",
        **_rows(report),
    )


def _rows(report: BulkReport) -> dict[str, object]:
    return {"accepted_count": report.order.count, "rejected": _rejected(report.rows.rejections)}


def bulk_response(page: BulkPage, next_cursor: str | None) -> BulkResponse:
    return struct_from(
        BulkResponse,
        page,
        type=page.order.analysis_type,
        business_profile_id=page.order.business_profile_id,
        is_fresh=page.order.is_fresh,
        counts=BulkCountsResponse(**dict.fromkeys(BulkCountsResponse.__struct_fields__, 0) | page.counts),
        items=[_item_response(item) for item in page.items],
        next_cursor=next_cursor,
        rejected=_rejected(page.rejections),
    )


def _rejected(rejections: Sequence[Rejection]) -> list[RejectedResponse]:
    return [struct_from(RejectedResponse, rejection, username=rejection.text) for rejection in rejections]


def _item_response(item: PageItem) -> BulkItemResponse:
    is_analysed = item.status == "completed" and item.run_id is not None
    url = f"/v1/analyses/{item.run_id}" if is_analysed else None
    return struct_from(BulkItemResponse, item, analysis_url=url)
