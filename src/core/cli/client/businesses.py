"""Choice of the business profile that an analysis is made for."""

import click

from core.cli.client.api_client import Api
from core.cli.client.schemas import Business, Businesses
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


async def chosen_business(api: Api, given: str | None, *, may_create: bool) -> str:
    """Returns the given or the only profile; creates an example if none exists and ``may_create`` is set."""
    if given is not None:
        return given
    found = await api.get(PATH, Businesses, limit=SHOWN_MAX)
    if len(found.items) == 1:
        return found.items[0].id
    if found.items:
        lines = "\n".join(f"  {business.id}  {plain(business.name)}" for business in found.items)
        raise click.UsageError(f"There are several business profiles. Choose one with --business:\n{lines}")
    if not may_create:
        raise click.ClickException(
            f"There is no business profile yet. Describe your business first: POST {api.url}{PATH}"
        )
    return (await create_example(api)).id


async def create_example(api: Api) -> Business:
    business = await api.post(PATH, Business, EXAMPLE)
    click.echo(
        f"There was no business profile: created an example, {business.name} ({business.id}).", err=True
    )
    return business
