"""Candidates of a task with their parameters. Parameters that a model rejects are removed only here."""

from datetime import date

import msgspec

from infrastructure.ai.model_catalog import Model, ModelCatalog, Task
from infrastructure.ai.providers.base import Effort
from shared.llm import ModelsUnavailable

EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high")
# Reasoning tokens count as output.
THOUGHT_TOKENS: dict[Effort, int] = {"minimal": 500, "low": 2_000, "medium": 8_000, "high": 24_000}

NOBODY_HERE_S = 300


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    model: Model
    effort: Effort | None
    temperature: float | None
    output_tokens_max: int


def legs_of(table: ModelCatalog, task: Task, today: date) -> tuple[Candidate, ...]:
    """Raises ModelsUnavailable when no provider of the task is configured."""
    route = table.route(task, today)
    if not route:
        raise ModelsUnavailable(task=task.name, retry_after_s=NOBODY_HERE_S)
    return tuple(_leg(task, model) for model in route)


def _leg(task: Task, model: Model) -> Candidate:
    effort = _nearest(task.effort, model.efforts)
    thoughts = 0 if effort is None else THOUGHT_TOKENS[effort]
    return Candidate(
        model=model,
        effort=effort,
        temperature=task.temperature if model.temperature else None,
        output_tokens_max=min(task.output_tokens_max + thoughts, model.output_tokens_max),
    )


def _nearest(wanted: Effort | None, efforts: tuple[Effort, ...]) -> Effort | None:
    """The same effort, otherwise the next higher one, otherwise the highest."""
    if wanted is None or not efforts:
        return None
    ranks = [EFFORTS.index(effort) for effort in efforts]
    return EFFORTS[min((rank for rank in ranks if rank >= EFFORTS.index(wanted)), default=max(ranks))]
