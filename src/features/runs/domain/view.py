"""Response schema of a run."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from features.runs.domain.estimates import (
    QueueFigures,
    QueuePosition,
    StepTimes,
    queue_position,
    seconds_left,
)
from features.runs.domain.kinds import ResultLink
from features.runs.domain.refunds import REFUND_POLICIES
from features.runs.domain.run import Run, Status, StepStarted

# Live progress is available this long after the end; later only the row is left.
LIVE_AFTER_END = timedelta(hours=1)
NOT_IN_POLICY = "The refund policy has no rule for this outcome, so nothing is charged."


class Children(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over a run's children, which are added to its own amounts."""

    credits_held: int = 0
    credits_charged: int = 0


class RunSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Stored data of a run and its children."""

    run: Run
    children: Children


class RefundResponse(msgspec.Struct, frozen=True, kw_only=True):
    policy_version: int
    percent_charged: int
    explanation: str


class RunResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    kind: str
    status: Status
    progress: int
    current_step: str | None
    should_cancel: bool
    steps: tuple[StepStarted, ...]
    queue: QueuePosition | None
    eta_s: int | None
    credits_held: int
    credits_charged: int
    outcome: str | None
    error: str | None
    refund: RefundResponse | None
    result_url: str | None
    parent_id: UUID | None
    retry_of: UUID | None
    subject: dict[str, Any]
    is_live: bool
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    version: int


def run_response(
    snapshot: RunSnapshot,
    *,
    links: Mapping[str, ResultLink],
    times: StepTimes,
    figures: QueueFigures | None,
    at: datetime,
) -> RunResponse:
    """``figures`` are set for a queued run; without them the queue position is left out."""
    run, children = snapshot.run, snapshot.children
    position = queue_position(figures, times) if figures and run.status == "queued" else None
    return RunResponse(
        run_id=run.id,
        kind=run.kind,
        status=run.status,
        progress=run.progress,
        current_step=run.current_step,
        should_cancel=run.should_cancel,
        steps=run.steps,
        queue=position,
        eta_s=_eta_s(run, times, position),
        credits_held=run.credits_held + children.credits_held,
        credits_charged=run.credits_charged + children.credits_charged,
        outcome=run.outcome,
        error=run.error,
        refund=_refund(run),
        result_url=_result_url(run, links.get(run.kind)),
        parent_id=run.parent_id,
        retry_of=run.retry_of,
        subject=run.subject,
        is_live=run.ended_at is None or at < run.ended_at + LIVE_AFTER_END,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        version=run.version,
    )


def _eta_s(run: Run, times: StepTimes, position: QueuePosition | None) -> int | None:
    left_s = seconds_left(run, times)
    if run.status != "queued" or left_s is None:
        return left_s
    return None if position is None else position.starts_in_s + left_s


def _refund(run: Run) -> RefundResponse | None:
    policy = REFUND_POLICIES.get(run.refund_policy)
    if run.outcome is None or policy is None:
        return None
    rule = policy.rule(run.outcome)
    return RefundResponse(
        policy_version=policy.version,
        percent_charged=rule.percent_charged if rule else 0,
        explanation=rule.explanation if rule else NOT_IN_POLICY,
    )


def _result_url(run: Run, link: ResultLink | None) -> str | None:
    if link is None or not (link.is_early or run.status == "completed"):
        return None
    return link.template.format(run_id=run.id)
