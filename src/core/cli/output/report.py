"""Report of an analysis for the terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from core.cli.output.renderer import TIER_COLOURS, cell, counted
from core.cli.output.run_text import charge_text
from features.analysis.controllers.analysis_schemas import AnalysisResponse
from features.analysis.controllers.model_output_schemas import (
    MessageResponse,
    PersonalityResponse,
    ReasonResponse,
)
from features.costs.controllers.schemas import RunCostsResponse
from features.runs.domain.view import RunResponse
from shared.text import plain

TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "emotional_stability")
REASONS_SHOWN_MAX = 8


def analysis_report(
    analysis: AnalysisResponse, run: RunResponse, costs: RunCostsResponse | None = None
) -> RenderableType:
    return Group(*_parts(analysis, run, costs))


def _parts(
    analysis: AnalysisResponse, run: RunResponse, costs: RunCostsResponse | None
) -> Iterator[RenderableType]:
    yield _headline(analysis)
    yield _components(analysis)
    if analysis.answers.outreach is not None:
        yield from map(_message, analysis.answers.outreach.messages)
    if analysis.answers.personality is not None:
        yield _personality(analysis.answers.personality)
    yield Text(f"Charge: {charge_text(run)}", style="bold")
    if costs is not None:
        yield Text(cost_text(costs))


def _headline(analysis: AnalysisResponse) -> Panel:
    colour = TIER_COLOURS.get(analysis.tier, "white")
    lines = [
        Text.assemble(
            (f"{analysis.score} of 100, {plain(analysis.tier)}", f"bold {colour}"),
            f"   niche: {plain(analysis.niche)}   confidence: {analysis.confidence} %",
        ),
        Text(plain(_summary(analysis))),
        *(_reason(reason) for reason in analysis.reasons[:REASONS_SHOWN_MAX]),
        *_evidence(analysis),
        Text(_source(analysis), style="dim"),
    ]
    title = f"@{plain(analysis.username)}{' (simulated)' if analysis.is_simulated else ''}"
    return Panel(Group(*lines), title=Text(title), title_align="left")


def _summary(analysis: AnalysisResponse) -> str:
    answers = analysis.answers
    judgement = answers.light or answers.core or answers.commercial
    return judgement.summary if judgement else ""


def _reason(reason: ReasonResponse) -> Text:
    mark, colour = ("+", "green") if reason.effect == "for" else ("-", "red")
    labels = f" ({', '.join(map(plain, reason.evidence))})" if reason.evidence else ""
    return Text.assemble((f" {mark} ", f"bold {colour}"), plain(reason.text), (labels, "dim"))


def _evidence(analysis: AnalysisResponse) -> Iterator[Text]:
    """URLs of the posts that the reasons cite."""
    cited = {label for reason in analysis.reasons[:REASONS_SHOWN_MAX] for label in reason.evidence}
    for post in analysis.evidence:
        if post.label in cited:
            yield Text(f"   {plain(post.label)}: {plain(post.url)}", style="dim")


def _source(analysis: AnalysisResponse) -> str:
    provider = "simulator" if analysis.is_simulated else "real"
    models = f"; models: {', '.join(map(plain, analysis.models))}" if analysis.models else ""
    cached = "; the profile was fetched before" if analysis.is_cached else ""
    return f"provider: {provider}{models}{cached}"


def _components(analysis: AnalysisResponse) -> Table:
    title = f"Score: {counted(analysis.score, 'point')}"
    table = Table("component", "source", title=title, title_justify="left")
    table.add_column("points", justify="right")
    table.add_column("based on")
    for component in analysis.components:
        name = component.name.removeprefix("model_").replace("_", " ")
        points = f"{component.points} of {component.points_max}"
        table.add_row(cell(name), cell(component.source), points, cell(component.input))
    return table


def _message(message: MessageResponse) -> Panel:
    subject = f": {plain(message.subject)}" if message.subject else ""
    title = f"{plain(message.channel).replace('_', ' ').capitalize()}{subject}"
    body = "\n".join([plain(message.opening), *map(plain, message.message.splitlines())])
    return Panel(Text(body), title=Text(title), title_align="left")


def _personality(personality: PersonalityResponse) -> Padding:
    traits = ", ".join(f"{name.replace('_', ' ')} {getattr(personality, name)}" for name in TRAITS)
    style = f"{plain(personality.communication_style)}, decides {plain(personality.decision_style)}"
    text = Text.assemble(
        ("Personality: ", "bold"), f"{style.replace('_', ' ')}. {plain(personality.summary)}\n{traits}"
    )
    return Padding(text, (0, 1))


def cost_text(costs: RunCostsResponse) -> str:
    margins = costs.margins
    percent = "" if margins.percent is None else f" ({margins.percent:.1f} %)"
    at_most = "at most " if margins.is_at_most else ""
    return (
        f"Cost: {costs.total.cost_dollars:.4f} dollars (profile {costs.apify.cost_dollars:.4f},"
        f" models {costs.ai.cost_dollars:.4f}); revenue {margins.revenue_dollars:.2f};"
        f" margin {at_most}{margins.gross_dollars:.4f}{percent}"
    )
