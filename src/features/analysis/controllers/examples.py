"""Example responses for the OpenAPI document."""

from typing import Any

ENTRY_EXAMPLE: dict[str, Any] = {
    "id": "5b1c8a2e-6f0d-4c3b-9a7e-1d2f3c4b5a69",
    "lead_id": "c0a8f1d2-7b3e-4f5a-8c9d-0e1f2a3b4c5d",
    "business_profile_id": "0f8f6a3e-7c1b-4b8e-9d55-2a7d3c1e9b10",
    "username": "ana.bakes",
    "type": "light",
    "status": "completed",
    "score": 72,
    "tier": "warm",
    "niche_fit": 78,
    "engagement": 74,
    "confidence": 90,
    "niche": "home baking",
    "is_cached": False,
    "is_simulated": False,
    "user_id": "4c1d8f0a-52b7-4e0e-8a0f-6b1f2c3d4e5f",
    "scraped_at": "2026-11-01T09:29:41Z",
    "created_at": "2026-11-01T09:30:00Z",
}

_REASON = {"effect": "for", "text": "Bakes with rye every week.", "evidence": ["p1"]}
_POST_ID = "3141592653589793238"

ANALYSIS_EXAMPLE: dict[str, Any] = {
    **ENTRY_EXAMPLE,
    "profile": {
        "platform": "instagram",
        "username": "ana.bakes",
        "id": "27182818284",
        "full_name": "Ana Novak",
        "biography": "Bread from a small oven in Vienna.",
        "external_urls": ["https://ana-bakes.example"],
        "followers_count": 12_000,
        "following_count": 300,
        "posts_count": 90,
        "highlights_count": 4,
        "is_private": False,
        "is_verified": False,
        "is_business": True,
        "category": "Bakery",
        "picture_url": "https://pictures.example/ana.bakes.jpg",
        "related_usernames": ["rye.and.salt"],
    },
    "facts": {
        "at": "2026-11-01T09:29:41Z",
        "followers": 12_000,
        "following": 300,
        "posts_count": 90,
        "posts_sampled": 12,
        "size": "micro",
        "engagement": {
            "posts_measured": 12,
            "rate_mean": 2.95,
            "rate_median": 2.83,
            "comments_share": 0.04,
            "video_view_rate": None,
        },
        "rhythm": {"posts_per_week": 3.5, "days_since_last_post": 2, "regularity": 0.8},
        "mix": {"images": 9, "videos": 2, "carousels": 1},
        "hashtags": [{"text": "bread", "posts_count": 7}],
        "mentions": [],
        "authority": {
            "followers_per_following": 40.0,
            "is_verified": False,
            "is_business": True,
            "has_category": True,
        },
        "signals": [],
        "suspicion": 0,
        "script": "latin",
    },
    "fit": {
        "share": 0.6,
        "matches": [
            {
                "kind": "niche",
                "term": "sourdough bread",
                "places": [{"field": "caption", "post_id": _POST_ID}],
            }
        ],
        "exclusions": [],
        "post_ids": [_POST_ID],
    },
    "components": [
        {
            "name": "engagement",
            "source": "formula",
            "points": 16,
            "points_max": 22,
            "input": "median engagement rate 2.83 %; usual for micro: 2.40 %",
            "evidence_post_ids": [],
        },
        {
            "name": "model_niche_fit",
            "source": "model",
            "points": 12,
            "points_max": 16,
            "input": "70 of 100, counted by a confidence of 90 %",
            "evidence_post_ids": [_POST_ID],
        },
    ],
    "evidence_dropped": 0,
    "reasons": [_REASON],
    "evidence": [
        {
            "id": _POST_ID,
            "label": "p1",
            "url": "https://www.instagram.com/p/Cx1/",
            "caption": "Rye again.",
            "posted_at": "2026-10-30T07:00:00Z",
        }
    ],
    "answers": {
        "light": {
            "summary": "A baker who shows her craft and answers questions.",
            "niche": "home baking",
            "reasons": [_REASON],
            "niche_fit": 70,
            "engagement_quality": 60,
            "overall": 80,
            "confidence": 0.9,
        },
        "core": None,
        "outreach": None,
        "personality": None,
        "psychographic": None,
        "commercial": None,
    },
    "removals": [{"field": "summary", "kind": "link", "text": "bit.example/x"}],
    "models": ["openai/gpt-4o-mini"],
}
