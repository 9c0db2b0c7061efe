"""Example responses for the OpenAPI document."""

from typing import Any

LEAD_ANALYSIS_EXAMPLE: dict[str, Any] = {
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

LEAD_EXAMPLE: dict[str, Any] = {
    "id": LEAD_ANALYSIS_EXAMPLE["lead_id"],
    "business_profile_id": LEAD_ANALYSIS_EXAMPLE["business_profile_id"],
    "platform": "instagram",
    "username": "ana.bakes",
    "full_name": "Ana Novak",
    "biography": "Bread from a small oven in Vienna.",
    "followers": 12_000,
    "following": 300,
    "posts_count": 90,
    "is_verified": False,
    "is_business": True,
    "category": "Bakery",
    "picture_url": "https://pictures.example/ana.bakes.jpg",
    "external_urls": ["https://ana-bakes.example"],
    "tier": "warm",
    "score": 72,
    "niche": "home baking",
    "last_analysis_id": LEAD_ANALYSIS_EXAMPLE["id"],
    "last_analysis_type": "light",
    "last_analysed_at": "2026-11-01T09:30:00Z",
    "scraped_at": "2026-11-01T09:29:41Z",
    "created_at": "2026-10-02T08:12:30Z",
    "updated_at": "2026-11-01T09:30:00Z",
    "deleted_at": None,
    "version": 2,
}

COMPARISON_EXAMPLE: dict[str, Any] = {
    "days_between": 30,
    "is_same_type": True,
    "score_delta": 6,
    "tier_before": "warm",
    "tier_after": "warm",
    "followers_delta": 2_000,
    "followers_delta_percent": 20.0,
    "engagement_rate_delta": 0.4,
    "components": [{"name": "engagement", "before": 64, "after": 72, "delta": 8}],
    "hashtags_new": ["rye"],
    "hashtags_lost": ["oven"],
}

LEAD_DETAILS_EXAMPLE: dict[str, Any] = {
    **LEAD_EXAMPLE,
    "latest_analysis": LEAD_ANALYSIS_EXAMPLE,
    "comparison": COMPARISON_EXAMPLE,
}
