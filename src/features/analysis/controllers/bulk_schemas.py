"""Response schemas of bulk analyses."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from features.analysis.application.ports import StartedRun
from features.analysis.application.start_bulk import BulkReport
from features.analysis.controllers.request_schemas import BUSINESS_EXAMPLE
from features.analysis.controllers.start_schemas import RUN_EXAMPLE
from features.analysis.domain.bulk import BulkPage, ItemStatus, PageItem, Rejection
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


REJECTED_EXAMPLE = {
    "position": 2,
    "username": "@NatGeo",
    "code": "duplicate_in_list",
    "reason": "The same as row 1: @natgeo.",
}
BULK_QUOTE_EXAMPLE = {
    "accepted_count": 3,
    "rejected": [REJECTED_EXAMPLE],
    "credits_estimate": 3,
    "credits_available": 24,
}
BULK_STARTED_EXAMPLE = {
    "run_id": RUN_EXAMPLE,
    "status": "queued",
    "poll_url": f"/v1/runs/{RUN_EXAMPLE}",
    **BULK_QUOTE_EXAMPLE,
}
ITEM_RUN_EXAMPLE = "9a0b6d1e-53f7-4c52-8d0a-1c2e3f4a5b6c"
BULK_EXAMPLE = {
    "run_id": RUN_EXAMPLE,
    "status": "processing",
    "progress": 33,
    "current_step": "batch 1 of 1",
    "type": "light",
    "business_profile_id": BUSINESS_EXAMPLE,
    "is_fresh": False,
    "created_at": "2026-03-01T12:00:00Z",
    "ended_at": None,
    "counts": {"waiting": 1, "started": 1, "completed": 1, "failed": 0, "cancelled": 0, "skipped": 0},
    "items": [
        {
            "position": 1,
            "username": "natgeo",
            "status": "completed",
            "outcome": "completed",
            "run_id": ITEM_RUN_EXAMPLE,
            "analysis_url": f"/v1/analyses/{ITEM_RUN_EXAMPLE}",
        }
    ],
    "next_cursor": "7031",
    "rejected": [REJECTED_EXAMPLE],
}


def bulk_quote_out(report: BulkReport) -> BulkQuoteResponse:
    return BulkQuoteResponse(
        accepted_count=report.order.count,
        rejected=_rejected_out(report.rows.rejections),
        credits_estimate=report.credits_estimate,
        credits_available=report.credits_available,
    )


def bulk_started_out(started: StartedRun, report: BulkReport) -> BulkStartedResponse:
    return BulkStartedResponse(
        run_id=started.run_id,
        status=started.status,
        poll_url=f"/v1/runs/{started.run_id}",
        **msgspec.structs.asdict(bulk_quote_out(report)),
    )


def bulk_out(page: BulkPage, next_cursor: str | None) -> BulkResponse:
    return BulkResponse(
        run_id=page.run_id,
        status=page.status,
        progress=page.progress,
        current_step=page.current_step,
        type=page.order.analysis_type,
        business_profile_id=page.order.business_profile_id,
        is_fresh=page.order.is_fresh,
        created_at=page.created_at,
        ended_at=page.ended_at,
        counts=BulkCountsResponse(**dict.fromkeys(BulkCountsResponse.__struct_fields__, 0) | page.counts),
        items=[_item_out(item) for item in page.items],
        next_cursor=next_cursor,
        rejected=_rejected_out(page.rejections),
    )


def _rejected_out(rejections: Sequence[Rejection]) -> list[RejectedResponse]:
    return [
        RejectedResponse(position=one.position, username=one.text, code=one.code, reason=one.reason)
        for one in rejections
    ]


def _item_out(item: PageItem) -> BulkItemResponse:
    is_analysed = item.status == "completed" and item.run_id is not None
    return BulkItemResponse(
        position=item.position,
        username=item.username,
        status=item.status,
        outcome=item.outcome,
        run_id=item.run_id,
        analysis_url=f"/v1/analyses/{item.run_id}" if is_analysed else None,
    )
