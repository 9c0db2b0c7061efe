"""Choice of the business profile that an analysis is made for."""

import click

from core.cli.client.api_client import Api, Page
from features.business.controllers.schemas import ProfileResponse
from shared.text import plain

PATH = "/v1/business-profiles"
SHOWN_MAX = 20
# A fictional business, general enough that some simulated profiles fit it and others do not.
EXAMPLE = {
    "name": "Seasonal Table (example)",
    "industry": "Food and drink",
    "summary": "Cooking classes and recipe boxes with what grows nearby, by subscription.",
    "offering": "A box with three recipes a month, and a class by video.",
    "target_audience": "People who cook at home and care where things come from.",
    "value_proposition": "What is in season, on the table in forty minutes.",
    "tone": "Warm, plain, never pushy",
    "outreach_goal": "Win creators for a free tasting box.",
    "language": "en",
    "ideal_customer": {
        "niches": ["food", "recipe", "restaurant"],
        "content_themes": ["sourdough", "seasonal cooking", "local produce", "plant based"],
        "exclusions": ["fast food"],
    },
}


async def choose_business(api: Api, business_id: str | None) -> str:
    """Returns the requested or the only profile. A local server without a profile gets an example."""
    if business_id is not None:
        return business_id
    profiles = (await api.get(PATH, Page[ProfileResponse], limit=SHOWN_MAX)).items
    if len(profiles) == 1:
        return str(profiles[0].id)
    if profiles:
        lines = "\n".join(f"  {profile.id}  {plain(profile.name)}" for profile in profiles)
        raise click.UsageError(f"There are several business profiles. Choose one with --business:\n{lines}")
    if api.operator_token is None:
        raise click.ClickException(
            f"The account has no business profile. Create one first: oslira api POST {PATH} name=..."
        )
    profile = await api.post(PATH, ProfileResponse, EXAMPLE)
    click.echo(f"Created an example business profile: {profile.name} ({profile.id}).", err=True)
    return str(profile.id)
