"""Scripted server responses for the command tests."""

import msgspec
import msgspec.inspect as schemas

from features.analysis.controllers.analysis_schemas import AnalysisResponse
from features.analysis.controllers.model_output_schemas import (
    AnswersResponse,
    CoreResponse,
    OutreachResponse,
    PersonalityResponse,
)
from features.analysis.controllers.start_schemas import StartedResponse
from features.business.controllers.schemas import ProfileResponse
from features.costs.controllers.schemas import RunCostsResponse
from features.runs.domain.view import RunResponse
from tests.support.scripted_server import http

RUN_ID = "0f8d4c52-7a0e-4a1c-9d2b-5f6d0e3c1b7a"
BUSINESS_ID = "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11"
SIMPLE_VALUES = {
    schemas.BoolType: False,
    schemas.IntType: 0,
    schemas.FloatType: 0.0,
    schemas.StrType: "",
    schemas.UUIDType: RUN_ID,
    schemas.DateTimeType: "2026-01-01T09:30:00Z",
    schemas.ListType: [],
    schemas.VarTupleType: [],
    schemas.DictType: {},
}


def example(schema, **fields):
    """A valid document of a response schema; only the given fields have a meaning."""
    document = {**_example(schemas.type_info(schema)), **fields}
    msgspec.convert(document, schema)
    return document


def _example(kind):
    if isinstance(kind, schemas.StructType):
        return {field.encode_name: _example(field.type) for field in kind.fields if field.required}
    if isinstance(kind, schemas.UnionType):
        return None if kind.includes_none else _example(kind.types[0])
    if isinstance(kind, schemas.LiteralType):
        return kind.values[0]
    return SIMPLE_VALUES[type(kind)]


RUN = example(
    RunResponse,
    run_id=RUN_ID,
    kind="deep_analysis",
    status="processing",
    progress=40,
    current_step="core",
    eta_s=12,
    credits_held=5,
    subject={"username": "slow.kitchen", "type": "deep"},
)
COMPLETED = {
    **RUN,
    "status": "completed",
    "progress": 100,
    "outcome": "completed",
    "credits_charged": 5,
    "refund": {"policy_version": 1, "percent_charged": 100, "explanation": "It was delivered."},
    "result_url": f"/v1/analyses/{RUN_ID}",
}
FAILED = {
    **RUN,
    "status": "failed",
    "outcome": "private",
    "error": "@slow.kitchen is private.",
    "refund": {"policy_version": 1, "percent_charged": 0, "explanation": "There was nothing to analyse."},
}
CANCELLED = {
    **RUN,
    "status": "cancelled",
    "outcome": "cancelled_analyzing",
    "credits_charged": 2,
    "refund": {"policy_version": 1, "percent_charged": 50, "explanation": "Models were at work."},
}
ANALYSIS = example(
    AnalysisResponse,
    username="slow.kitchen",
    score=72,
    tier="warm",
    confidence=80,
    niche="seasonal food",
    components=[
        {"name": "model_overall", "source": "model", "points": 14, "points_max": 18, "input": "78 at 80 %"}
    ],
    reasons=[
        {"effect": "for", "text": "Cooks by season.", "evidence": ["p1"]},
        {"effect": "against", "text": "Sells a box already [/x]\x1b[31m.", "evidence": []},
    ],
    evidence=[
        {"id": "1", "label": "p1", "url": "https://instagram.com/p/1", "caption": "", "posted_at": None}
    ],
    answers=example(
        AnswersResponse,
        core=example(CoreResponse, summary="A cook with a loyal crowd."),
        outreach=example(
            OutreachResponse,
            messages=[
                {
                    "channel": "email",
                    "subject": "A box",
                    "opening": "Your soup for eight!",
                    "message": "Would you\ntaste ours?",
                }
            ],
        ),
        personality=example(
            PersonalityResponse, summary="Warm and steady.", decision_style="relationship_first"
        ),
    ),
    models=["openai/gpt-5"],
    is_simulated=True,
)
COSTS = example(
    RunCostsResponse,
    total={"calls": 4, "calls_unpriced": 0, "cost_dollars": 0.0151, "duration_ms": 0.0},
    margins={"revenue_dollars": 4.85, "gross_dollars": 4.8349, "percent": 99.69, "is_at_most": False},
)
BUSINESS = example(ProfileResponse, id=BUSINESS_ID, name="Seasonal Table (example)")
STARTED = http(202, example(StartedResponse, run_id=RUN_ID))


def shown(run, tag='"4"'):
    return http(200, run, etag=tag, retry_after="0")


def problem(status, code, detail, **headers):
    return http(status, {"status": status, "code": code, "detail": detail, "request_id": "r-1"}, **headers)
