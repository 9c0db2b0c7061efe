"""Scripted server responses for the command tests."""

from tests.support.scripted_server import http

RUN_ID = "0f8d4c52-7a0e-4a1c-9d2b-5f6d0e3c1b7a"
BUSINESS_ID = "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11"

RUN = {
    "run_id": RUN_ID,
    "kind": "deep_analysis",
    "status": "processing",
    "progress": 40,
    "current_step": "core",
    "should_cancel": False,
    "queue": None,
    "eta_s": 12,
    "credits_held": 5,
    "credits_charged": 0,
    "outcome": None,
    "error": None,
    "refund": None,
    "result_url": None,
    "subject": {"username": "slow.kitchen", "type": "deep"},
    "created_at": "2026-01-01T09:30:00Z",
    "version": 4,
}
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
ANALYSIS = {
    "id": RUN_ID,
    "username": "slow.kitchen",
    "score": 72,
    "tier": "warm",
    "confidence": 80,
    "niche": "seasonal food",
    "components": [
        {
            "name": "model_overall",
            "source": "model",
            "points": 14,
            "points_max": 18,
            "input": "78 at 80 %",
            "evidence_post_ids": [],
        }
    ],
    "reasons": [
        {"effect": "for", "text": "Cooks by season.", "evidence": ["p1"]},
        {"effect": "against", "text": "Sells a box already [/x]\x1b[31m.", "evidence": []},
    ],
    "evidence": [
        {"id": "1", "label": "p1", "url": "https://instagram.com/p/1", "caption": "", "posted_at": None}
    ],
    "answers": {
        "light": None,
        "core": {"summary": "A cook with a loyal crowd."},
        "outreach": {
            "messages": [
                {
                    "channel": "email",
                    "subject": "A box",
                    "opening": "Your soup for eight!",
                    "message": "Would you\ntaste ours?",
                }
            ]
        },
        "personality": {
            "summary": "Warm and steady.",
            "communication_style": "warm",
            "decision_style": "relationship_first",
            "openness": 70,
            "conscientiousness": 60,
            "extraversion": 50,
            "agreeableness": 80,
            "emotional_stability": 65,
        },
    },
    "models": ["openai/gpt-5"],
    "is_cached": False,
    "is_simulated": True,
}
COSTS = {
    "apify": {"calls": 1, "cost_dollars": 0.003},
    "ai": {"calls": 3, "cost_dollars": 0.0121},
    "total": {"calls": 4, "cost_dollars": 0.0151},
    "margins": {"revenue_dollars": 4.85, "gross_dollars": 4.8349, "percent": 99.69, "is_at_most": False},
}
STARTED = http(202, {"run_id": RUN_ID, "status": "queued", "poll_url": f"/v1/runs/{RUN_ID}"})


def shown(run, tag='"4"'):
    return http(200, run, etag=tag, retry_after="0")


def problem(status, code, detail, **headers):
    return http(status, {"status": status, "code": code, "detail": detail, "request_id": "r-1"}, **headers)
