"""Catalog of models and tasks from ``models.toml``, validated once when it is read."""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from infrastructure.ai.providers.base import Effort
from shared.llm import ModelsUnavailable

FILE = Path(__file__).with_name("models.toml")
RETIREMENT_NOTICE = timedelta(days=30)
EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high")
# Reasoning tokens count as output.
REASONING_TOKENS: dict[Effort, int] = {"minimal": 500, "low": 2_000, "medium": 8_000, "high": 24_000}
NOT_CONFIGURED_RETRY_S = 300

Count = Annotated[int, msgspec.Meta(ge=1)]


class ModelCatalogInvalid(ValueError):
    pass


class UnknownTask(LookupError):
    def __init__(self, task: str) -> None:
        super().__init__(f"There is no task {task!r} in {FILE.name}. Use one of its tasks.")


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""  # key of the table row, set when the file is read
    provider: str
    kind: Literal["text", "embedding"] = "text"
    context_tokens_max: Count
    output_tokens_max: int = 0
    temperature: bool = False
    efforts: tuple[Effort, ...] = ()
    dimensions: Count | None = None  # required length of the vectors
    retires_on: date | None = None
    successor: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    model: str
    fallbacks: tuple[str, ...] = ()
    effort: Effort | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    output_tokens_max: int = 0
    deadline_s: Annotated[float, msgspec.Meta(gt=0)]
    attempts_max: Count

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model, *self.fallbacks)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a task with its parameters. Parameters that the model rejects are None."""

    model: Model
    effort: Effort | None
    temperature: float | None
    output_tokens_max: int


class Retirement(NamedTuple):
    model: str
    retires_on: date
    successor: str
    tasks: tuple[str, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, Model]
    tasks: dict[str, Task]


class ModelCatalog:
    def __init__(
        self,
        models: Mapping[str, Model],
        tasks: Mapping[str, Task],
        *,
        providers: Collection[str] | None = None,
    ) -> None:
        self._models = dict(models)
        self._tasks = dict(tasks)
        self._providers = None if providers is None else frozenset(providers)
        for name in self._models:
            self._check_model(name)
        for task in self._tasks.values():
            self._check_task(task)

    def task(self, name: str) -> Task:
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name) from None

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._tasks)

    @property
    def models(self) -> tuple[Model, ...]:
        """Models whose provider is configured."""
        return tuple(filter(self._is_configured, self._models.values()))

    def route(self, task: Task, today: date) -> tuple[Model, ...]:
        """Models in the order in which they are tried. A retired model is replaced by its successor. Empty
        when no provider of the task is configured.
        """
        route = dict.fromkeys(self._in_service(name, today) for name in task.models)
        return tuple(filter(self._is_configured, route))

    def candidates(self, task_name: str, today: date) -> tuple[Candidate, ...]:
        """The route with parameters. Raises ModelsUnavailable when no provider of the task is configured."""
        task = self.task(task_name)
        route = self.route(task, today)
        if not route:
            raise ModelsUnavailable(task=task.name, retry_after_s=NOT_CONFIGURED_RETRY_S)
        return tuple(_candidate(task, model) for model in route)

    def warnings(self, today: date) -> list[Retirement]:
        """Models in use that retire within 30 days."""
        return [
            Retirement(model.name, model.retires_on, model.successor, tasks)
            for model in self.models
            if model.retires_on is not None
            and model.successor is not None
            and timedelta(0) < model.retires_on - today <= RETIREMENT_NOTICE
            and (tasks := tuple(name for name, task in self._tasks.items() if self._uses(task, model, today)))
        ]

    def _is_configured(self, model: Model) -> bool:
        return self._providers is None or model.provider in self._providers

    def _uses(self, task: Task, model: Model, today: date) -> bool:
        return model in self.route(task, today)

    def _in_service(self, name: str, today: date) -> Model:
        model = self._models[name]
        while model.retires_on is not None and model.successor is not None and today >= model.retires_on:
            model = self._models[model.successor]
        return model

    def _lineage(self, name: str) -> Iterator[Model]:
        """The model and all its successors. Raises ModelCatalogInvalid for a cycle or an unknown name."""
        seen: set[str] = set()
        successor: str | None = name
        while successor is not None:
            if successor in seen:
                raise ModelCatalogInvalid(f"The successors of {name} lead back to {successor}.")
            if successor not in self._models:
                raise ModelCatalogInvalid(f"{successor} is named as a model but is not defined.")
            seen.add(successor)
            model = self._models[successor]
            yield model
            successor = model.successor

    def _check_model(self, name: str) -> None:
        model = self._models[name]
        if (model.retires_on is None) != (model.successor is None):
            raise ModelCatalogInvalid(f"{name} needs both retires_on and successor, or neither.")
        if model.kind == "text" and model.output_tokens_max < 1:
            raise ModelCatalogInvalid(f"{name} needs output_tokens_max.")
        if any(later.kind != model.kind for later in self._lineage(name)):
            raise ModelCatalogInvalid(f"{name} is succeeded by a model of another kind.")

    def _check_task(self, task: Task) -> None:
        models = [model for name in task.models for model in self._lineage(name)]
        if len({model.kind for model in models}) > 1:
            raise ModelCatalogInvalid(f"The task {task.name} mixes text models with embedding models.")
        if models[0].kind == "embedding":
            return
        if task.output_tokens_max < 1:
            raise ModelCatalogInvalid(f"The task {task.name} needs output_tokens_max.")
        for model in models:
            if task.output_tokens_max > model.output_tokens_max:
                raise ModelCatalogInvalid(
                    f"The task {task.name} needs {task.output_tokens_max} tokens of output;"
                    f" {model.name} allows at most {model.output_tokens_max}."
                )


def _candidate(task: Task, model: Model) -> Candidate:
    effort = _nearest(task.effort, model.efforts)
    reasoning_tokens = 0 if effort is None else REASONING_TOKENS[effort]
    return Candidate(
        model=model,
        effort=effort,
        temperature=task.temperature if model.temperature else None,
        output_tokens_max=min(task.output_tokens_max + reasoning_tokens, model.output_tokens_max),
    )


def _nearest(wanted: Effort | None, efforts: tuple[Effort, ...]) -> Effort | None:
    """The same effort, otherwise the next higher one, otherwise the highest."""
    if wanted is None or not efforts:
        return None
    ranks = [EFFORTS.index(effort) for effort in efforts]
    return EFFORTS[min((rank for rank in ranks if rank >= EFFORTS.index(wanted)), default=max(ranks))]


def read_model_catalog(
    models_by_task: Mapping[str, str] | None = None,
    *,
    providers: Collection[str] | None = None,
    text: str | None = None,
) -> ModelCatalog:
    """``models_by_task`` overrides the first model of a task. Models of providers that are not in
    ``providers`` are skipped.
    """
    try:
        file = msgspec.convert(tomllib.loads(FILE.read_text("utf-8") if text is None else text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ModelCatalogInvalid(f"{FILE.name}: {error}") from None
    overrides = models_by_task or {}
    for name in overrides:
        if name not in file.tasks:
            raise ModelCatalogInvalid(f"A model is set for the task {name}, which does not exist.")
    return ModelCatalog(
        {name: msgspec.structs.replace(model, name=name) for name, model in file.models.items()},
        {
            name: msgspec.structs.replace(task, name=name, model=overrides.get(name, task.model))
            for name, task in file.tasks.items()
        },
        providers=providers,
    )
