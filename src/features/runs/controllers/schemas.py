"""Response schemas and entity tags of the run routes, and the example of a run."""

from typing import Any
from uuid import UUID

import msgspec

from features.runs.domain.refunds import RefundPolicy
from features.runs.domain.run import Status

PATH = "/v1/runs"


class RunStartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: Status
    poll_url: str


class RefundPoliciesResponse(msgspec.Struct, frozen=True, kw_only=True):
    current_version: int
    policies: list[RefundPolicy]


def poll_url(run_id: UUID) -> str:
    return f"{PATH}/{run_id}"


def is_current(if_none_match: str | None, tag: str) -> bool:
    """Return whether If-None-Match contains this tag, strong or weak (RFC 9110, 13.1.2)."""
    if if_none_match is None:
        return False
    tags = [one.strip().removeprefix("W/") for one in if_none_match.split(",")]
    return tags == ["*"] or tag in tags


RUN_EXAMPLE: dict[str, Any] = {
    "run_id": "0f8d4c52-7a0e-4a1c-9d2b-5f6d0e3c1b7a",
    "kind": "deep_analysis",
    "status": "processing",
    "progress": 40,
    "current_step": "core",
    "should_cancel": False,
    "steps": [
        {"step": "scrape", "at": "2026-11-01T09:30:01Z"},
        {"step": "core", "at": "2026-11-01T09:30:09Z"},
    ],
    "queue": None,
    "eta_s": 12,
    "credits_held": 5,
    "credits_charged": 0,
    "outcome": None,
    "error": None,
    "refund": None,
    "result_url": None,
    "parent_id": None,
    "retry_of": None,
    "subject": {"username": "alpine.coffee", "type": "deep"},
    "is_live": True,
    "created_at": "2026-11-01T09:30:00Z",
    "started_at": "2026-11-01T09:30:01Z",
    "ended_at": None,
    "version": 4,
}
