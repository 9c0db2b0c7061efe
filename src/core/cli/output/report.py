"""Report of an analysis for the terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from core.cli.client.schemas import Answer, Run, RunCosts
from core.cli.output.run_text import cell, counted, settlement_of
from shared.text import plain

TIER_COLOURS = {"hot": "red", "warm": "yellow", "cool": "cyan", "cold": "blue"}
TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "emotional_stability")
REASONS_SHOWN_MAX = 8


class Component(Answer, frozen=True, kw_only=True):
    name: str
    source: str
    points: int
    points_max: int
    input: str = ""


class Reason(Answer, frozen=True, kw_only=True):
    effect: str
    text: str
    evidence: tuple[str, ...] = ()


class EvidencePost(Answer, frozen=True, kw_only=True):
    label: str = ""
    url: str = ""


class Judgement(Answer, frozen=True, kw_only=True):
    summary: str


class Message(Answer, frozen=True, kw_only=True):
    channel: str
    subject: str = ""
    opening: str
    message: str


class Outreach(Answer, frozen=True, kw_only=True):
    messages: tuple[Message, ...] = ()


class Personality(Answer, frozen=True, kw_only=True):
    summary: str
    communication_style: str
    decision_style: str
    openness: int
    conscientiousness: int
    extraversion: int
    agreeableness: int
    emotional_stability: int


class Answers(Answer, frozen=True, kw_only=True):
    """Completions of an analysis; its type decides which exist. ``summary`` uses the first judgement that
    exists.
    """

    light: Judgement | None = None
    core: Judgement | None = None
    commercial: Judgement | None = None
    outreach: Outreach | None = None
    personality: Personality | None = None

    @property
    def summary(self) -> str:
        judgement = self.light or self.core or self.commercial
        return judgement.summary if judgement else ""


class Analysis(Answer, frozen=True, kw_only=True):
    username: str
    score: int
    tier: str
    confidence: int
    niche: str
    components: tuple[Component, ...] = ()
    reasons: tuple[Reason, ...] = ()
    evidence: tuple[EvidencePost, ...] = ()
    answers: Answers
    models: tuple[str, ...] = ()
    is_cached: bool = False
    is_simulated: bool = False


def report_of(analysis: Analysis, run: Run, costs: RunCosts | None = None) -> RenderableType:
    return Group(*_parts(analysis, run, costs))


def _parts(analysis: Analysis, run: Run, costs: RunCosts | None) -> Iterator[RenderableType]:
    yield _headline(analysis)
    yield _components(analysis)
    if analysis.answers.outreach is not None:
        yield from map(_message, analysis.answers.outreach.messages)
    if analysis.answers.personality is not None:
        yield _personality(analysis.answers.personality)
    yield Text(f"Paid: {settlement_of(run)}", style="bold")
    if costs is not None:
        yield Text(margin_of(costs))


def _headline(analysis: Analysis) -> Panel:
    colour = TIER_COLOURS.get(analysis.tier, "white")
    lines = [
        Text.assemble(
            (f"{analysis.score} of 100, {plain(analysis.tier)}", f"bold {colour}"),
            f"   niche: {plain(analysis.niche)}   confidence: {analysis.confidence} %",
        ),
        Text(plain(analysis.answers.summary)),
        *(_reason(reason) for reason in analysis.reasons[:REASONS_SHOWN_MAX]),
        *_evidence(analysis),
        Text(_source(analysis), style="dim"),
    ]
    return Panel(Group(*lines), title=Text(f"@{plain(analysis.username)}"), title_align="left")


def _reason(reason: Reason) -> Text:
    mark, colour = ("+", "green") if reason.effect == "for" else ("-", "red")
    labels = f" ({', '.join(map(plain, reason.evidence))})" if reason.evidence else ""
    return Text.assemble((f" {mark} ", f"bold {colour}"), plain(reason.text), (labels, "dim"))


def _evidence(analysis: Analysis) -> Iterator[Text]:
    """URLs of the posts that the reasons cite."""
    named = {label for reason in analysis.reasons[:REASONS_SHOWN_MAX] for label in reason.evidence}
    for post in analysis.evidence:
        if post.label in named:
            yield Text(f"   {plain(post.label)}: {plain(post.url)}", style="dim")


def _source(analysis: Analysis) -> str:
    provider = "simulator" if analysis.is_simulated else "real"
    models = f"; models: {', '.join(map(plain, analysis.models))}" if analysis.models else ""
    cached = "; the profile was known already" if analysis.is_cached else ""
    return f"provider: {provider}{models}{cached}"


def _components(analysis: Analysis) -> Table:
    title = f"Where the {counted(analysis.score, 'point')} come from"
    table = Table("what counts", "from", title=title, title_justify="left")
    table.add_column("points", justify="right")
    table.add_column("because")
    for component in analysis.components:
        name = component.name.removeprefix("model_").replace("_", " ")
        points = f"{component.points} of {component.points_max}"
        table.add_row(cell(name), cell(component.source), points, cell(component.input))
    return table


def _message(message: Message) -> Panel:
    subject = f": {plain(message.subject)}" if message.subject else ""
    title = f"{plain(message.channel).replace('_', ' ').capitalize()}{subject}"
    body = "\n".join([plain(message.opening), *map(plain, message.message.splitlines())])
    return Panel(Text(body), title=Text(title), title_align="left")


def _personality(personality: Personality) -> Padding:
    traits = ", ".join(f"{name.replace('_', ' ')} {getattr(personality, name)}" for name in TRAITS)
    style = f"{plain(personality.communication_style)}, decides {plain(personality.decision_style)}"
    text = Text.assemble(
        ("Personality: ", "bold"), f"{style.replace('_', ' ')}. {plain(personality.summary)}\n{traits}"
    )
    return Padding(text, (0, 1))


def margin_of(costs: RunCosts) -> str:
    margins = costs.margins
    percent = "" if margins.percent is None else f" ({margins.percent:.1f} %)"
    at_most = "at most " if margins.is_at_most else ""
    return (
        f"Cost: {costs.total.cost_dollars:.4f} dollars (profile {costs.apify.cost_dollars:.4f},"
        f" models {costs.ai.cost_dollars:.4f}); revenue {margins.revenue_dollars:.2f};"
        f" margin {at_most}{margins.gross_dollars:.4f}{percent}"
    )
