"""Request and response schemas for starting and quoting analyses. The domain checks usernames."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from features.analysis.application.ports import StartedRun
from features.analysis.application.quotes import Quote, RefundTerm
from features.analysis.application.start_bulk import BulkRows
from features.analysis.domain.bulk import USERNAMES_MAX
from features.analysis.domain.profile.profile import username_of
from features.analysis.domain.requests import NewAnalysis
from features.analysis.domain.scoring.ideal_customer import Violation
from shared.http.parameters import RequestBody
from shared.http.responses import struct_from
from shared.ids import AnalysisType, BusinessProfileId

REFUND_POLICY_URL = "/v1/refund-policy"
POLL_AFTER_S = "2"
USERNAME_LENGTH_MAX = 300  # a URL with the parameters that sharing adds
USERNAME_TEXT = "An Instagram username, with or without `@`, or the URL of a profile."

Username = Annotated[
    str, msgspec.Meta(min_length=1, max_length=USERNAME_LENGTH_MAX, description=USERNAME_TEXT)
]
Row = Annotated[str, msgspec.Meta(max_length=USERNAME_LENGTH_MAX)]
Rows = Annotated[
    list[Row],
    msgspec.Meta(min_length=1, max_length=USERNAMES_MAX, description="At most as many as the plan allows."),
]
IsFresh = Annotated[bool, msgspec.Meta(description="Fetch the profile again, even if a recent copy exists.")]


class StartAnalysisRequest(RequestBody, frozen=True, kw_only=True):
    username: Username
    business_profile_id: UUID
    type: AnalysisType
    is_fresh: IsFresh = False

    @property
    def analysis(self) -> NewAnalysis:
        return NewAnalysis(
            username=username_of(self.username),
            analysis_type=self.type,
            business_profile_id=BusinessProfileId(self.business_profile_id),
            is_fresh=self.is_fresh,
        )


class StartBulkRequest(RequestBody, frozen=True, kw_only=True):
    business_profile_id: UUID
    type: AnalysisType
    usernames: Rows
    is_fresh: IsFresh = False

    @property
    def rows(self) -> BulkRows:
        return BulkRows(
            analysis_type=self.type,
            business_profile_id=BusinessProfileId(self.business_profile_id),
            is_fresh=self.is_fresh,
            usernames=self.usernames,
        )


class StartAnonymousRequest(RequestBody, frozen=True, kw_only=True):
    username: Username


class StartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: str
    poll_url: str
    credits_held: int
    is_duplicate: bool


class AnonymousStartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: str
    poll_url: str
    token: str
    expires_at: datetime


class ChecksResponse(msgspec.Struct, frozen=True, kw_only=True):
    outcome: str
    violations: tuple[Violation, ...]


class PlanResponse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    runs_at_once: int
    runs_at_work: int
    light_per_hour: int
    bulk_max: int


class QuotedRefundsResponse(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    url: str
    rules: tuple[RefundTerm, ...]


class QuoteResponse(msgspec.Struct, frozen=True, kw_only=True):
    credits: int
    credits_available: int
    is_affordable: bool
    is_duplicate: bool
    duplicate_run_id: UUID | None
    is_cached: bool
    checks: ChecksResponse | None
    eta_s: int
    plan: PlanResponse
    refund_policy: QuotedRefundsResponse


def started_response(started: StartedRun) -> StartedResponse:
    return struct_from(StartedResponse, started, poll_url=f"/v1/runs/{started.run_id}")


def quote_response(quote: Quote) -> QuoteResponse:
    terms = quote.terms
    return struct_from(
        QuoteResponse,
        quote,
        credits_available=terms.credits_available,
        is_duplicate=terms.duplicate_run_id is not None,
        duplicate_run_id=terms.duplicate_run_id,
        checks=quote.checks and struct_from(ChecksResponse, quote.checks),
        plan=struct_from(PlanResponse, terms, name=terms.plan),
        refund_policy=struct_from(QuotedRefundsResponse, quote.refund, url=REFUND_POLICY_URL),
    )
