"""Request schemas for starting analyses. The domain decides whether a text is a username."""

from typing import Annotated
from uuid import UUID

import msgspec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg

from features.analysis.application.start_bulk import BulkRows
from features.analysis.domain.bulk import USERNAMES_MAX
from features.analysis.domain.profile.profile import username_of
from features.analysis.domain.requests import NewAnalysis
from shared.ids import AnalysisType, BusinessProfileId

USERNAME_LENGTH_MAX = 300  # a URL with the parameters that sharing adds
USERNAME_TEXT = "An Instagram username, with or without `@`, or the URL of a profile."

Username = Annotated[
    str, msgspec.Meta(min_length=1, max_length=USERNAME_LENGTH_MAX, description=USERNAME_TEXT)
]
Row = Annotated[str, msgspec.Meta(max_length=USERNAME_LENGTH_MAX)]
Rows = Annotated[
    list[Row],
    msgspec.Meta(min_length=1, max_length=USERNAMES_MAX, description="As many as your plan allows at once."),
]
IsFresh = Annotated[
    bool, msgspec.Meta(description="Fetch the profile again, even if a recent copy is cached.")
]


class StartAnalysisRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    username: Username
    business_profile_id: UUID
    type: AnalysisType
    is_fresh: IsFresh = False

    @property
    def order(self) -> NewAnalysis:
        return NewAnalysis(
            username=username_of(self.username),
            analysis_type=self.type,
            business_profile_id=BusinessProfileId(self.business_profile_id),
            is_fresh=self.is_fresh,
        )


class StartBulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    business_profile_id: UUID
    type: AnalysisType
    usernames: Rows
    is_fresh: IsFresh = False

    @property
    def wish(self) -> BulkRows:
        return BulkRows(
            analysis_type=self.type,
            business_profile_id=BusinessProfileId(self.business_profile_id),
            is_fresh=self.is_fresh,
            usernames=self.usernames,
        )


class StartAnonymousRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    username: Username


BUSINESS_EXAMPLE = "5f3c1a52-0d6e-4c1b-8a77-2b8e0a9d4c11"
ANALYSIS_BODY_EXAMPLE = {"username": "natgeo", "business_profile_id": BUSINESS_EXAMPLE, "type": "light"}
BULK_BODY_EXAMPLE = {
    "business_profile_id": BUSINESS_EXAMPLE,
    "type": "light",
    "usernames": ["natgeo", "@nasa", "https://www.instagram.com/unesco/"],
}

AnalysisBody = Annotated[StartAnalysisRequest, BodyKwarg(examples=[Example(value=ANALYSIS_BODY_EXAMPLE)])]
BulkBody = Annotated[StartBulkRequest, BodyKwarg(examples=[Example(value=BULK_BODY_EXAMPLE)])]
AnonymousBody = Annotated[StartAnonymousRequest, BodyKwarg(examples=[Example(value={"username": "natgeo"})])]
