import re
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pytest

from infrastructure.ai.model_catalog import ModelCatalogInvalid, UnknownTask, read_model_catalog
from shared.llm import ModelsUnavailable

TODAY = date(2026, 11, 16)
MODEL = 'provider = "openai"\ncontext_tokens_max = 100\noutput_tokens_max = 100\n'
TASK = '[tasks.t]\nmodel = "a"\noutput_tokens_max = 10\ndeadline_s = 1\nattempts_max = 1\n'


def row(name, more=""):
    return f"[models.{name}]\n{MODEL}{more}\n"


def retiring(day, successor):
    return f'retires_on = {day}\nsuccessor = "{successor}"'


def models_of(task, today=TODAY, **options):
    table = read_model_catalog(**options)
    return [model.name for model in table.route(table.task(task), today)]


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("analysis.light", "gpt-4o-mini"),
        ("analysis.deep.core", "gpt-5-mini"),
        ("analysis.deep.outreach", "gpt-5-mini"),
        ("analysis.deep.personality", "gpt-5-mini"),
        ("analysis.xray.psychographic", "gpt-5"),
        ("analysis.xray.commercial", "gpt-5-mini"),
        ("analysis.xray.outreach", "gpt-5-mini"),
        ("analysis.xray.personality", "gpt-5-mini"),
        ("business.context", "gpt-5-mini"),
        ("embeddings", "text-embedding-3-small"),
    ],
)
def test_tasks_have_the_specified_models(task, model):
    assert models_of(task)[0] == model


def test_every_text_task_falls_back_to_claude():
    table = read_model_catalog()

    for task in table.tasks:
        providers = [model.provider for model in table.route(table.task(task), TODAY)]
        assert providers == (["openai"] if task == "embeddings" else ["openai", "anthropic"])


def test_claude_models_are_known_and_not_deprecated_in_the_sdk():
    """Reads the SDK's source, because its import takes seconds."""
    folder = Path(find_spec("anthropic").origin).parent
    known = (folder / "types/model_param.py").read_text()
    warnings = (folder / "resources/messages/messages.py").read_text()
    retired = re.search(r"DEPRECATED_MODELS = (\{.*?\})", warnings, re.DOTALL)[1]

    for model in read_model_catalog().models:
        if model.provider == "anthropic":
            assert f'"{model.name}"' in known
            assert f'"{model.name}"' not in retired


def test_temperature_is_sent_only_to_models_that_support_it():
    table = read_model_catalog()

    (mini, claude) = table.candidates("optimization.meta", TODAY)
    (luna, _) = table.candidates("optimization.meta", date(2027, 1, 14))

    assert (mini.temperature, mini.effort, mini.output_tokens_max) == (0.7, None, 500)
    assert (claude.temperature, claude.effort) == (None, "low")
    assert (luna.model.name, luna.temperature, luna.effort) == ("gpt-6-luna", None, "low")


@pytest.mark.parametrize(
    ("wanted", "known", "sent", "room"),
    [
        ("minimal", '["low", "high"]', "low", 2_010),
        ("medium", '["high", "low"]', "high", 24_010),
        ("high", '["low", "medium"]', "medium", 8_010),
        ("high", "[]", None, 10),
    ],
)
def test_unsupported_effort_becomes_the_nearest(wanted, known, sent, room):
    text = row("a", f"efforts = {known}").replace("output_tokens_max = 100", "output_tokens_max = 100_000")
    table = read_model_catalog(text=text + TASK + f'effort = "{wanted}"')

    (candidate,) = table.candidates("t", TODAY)

    assert (candidate.effort, candidate.output_tokens_max) == (sent, room)


def test_successor_is_used_from_the_day_of_retirement():
    assert models_of("analysis.light", date(2027, 1, 13))[0] == "gpt-4o-mini"
    assert models_of("analysis.light", date(2027, 1, 14))[0] == "gpt-6-luna"


def test_chain_of_retired_models_is_followed():
    text = row("a", retiring("2026-02-01", "b")) + row("b", retiring("2026-03-01", "c")) + row("c") + TASK

    served = [models_of("t", date(2026, month, 1), text=text) for month in (1, 2, 3)]

    assert served == [["a"], ["b"], ["c"]]


def test_shared_successor_is_listed_once():
    text = row("a", retiring("2026-01-01", "c")) + row("b", retiring("2026-01-01", "c")) + row("c") + TASK

    assert models_of("t", text=text + 'fallbacks = ["b"]') == ["c"]


def test_retirement_warning_starts_thirty_days_before():
    table = read_model_catalog()

    def announced(today):
        return [(warning.model, warning.successor) for warning in table.warnings(today)]

    assert announced(date(2026, 11, 10)) == []
    assert announced(date(2026, 11, 11)) == [("gpt-5-mini", "gpt-5.6-luna"), ("gpt-5", "gpt-6-sol")]
    assert announced(date(2026, 12, 11)) == []
    assert announced(date(2027, 1, 1)) == [("gpt-4o-mini", "gpt-6-luna")]
    assert table.warnings(TODAY)[1].tasks == ("analysis.xray.psychographic",)


def test_setting_overrides_the_first_model():
    models = models_of("analysis.light", models_by_task={"analysis.light": "gpt-5"})

    assert models == ["gpt-5", "claude-haiku-5-5"]


def test_unknown_task_raises_with_its_name():
    with pytest.raises(UnknownTask, match=r"no task 'analysis\.medium' in models\.toml"):
        read_model_catalog().task("analysis.medium")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = ", "Invalid value"),
        (row("b") + TASK, "a is named as a model but is not defined"),
        (row("a", 'colour = "blue"') + TASK, "unknown field `colour`"),
        (row("a", "efforts = ['max']") + TASK, "Invalid enum value 'max'"),
        (row("a", "retires_on = 2026-01-01") + TASK, "a needs both retires_on and successor"),
        (row("a", retiring("2026-01-01", "x")) + TASK, "x is named as a model"),
        (row("a", retiring("2026-01-01", "a")) + TASK, "The successors of a lead back to a"),
        (
            row("a", retiring("2026-01-01", "b")) + row("b", retiring("2026-01-01", "a")) + TASK,
            "The successors of a lead back to a",
        ),
        (row("a", 'kind = "embedding"') + row("b") + TASK + 'fallbacks = ["b"]', "mixes text models"),
        (row("a") + TASK.replace("= 10", "= 101"), "needs 101 tokens of output; a allows at most 100"),
        (row("a") + TASK.replace("output_tokens_max = 10\n", ""), "The task t needs output_tokens_max"),
        (row("a") + TASK.replace("attempts_max = 1", "attempts_max = 0"), ">= 1"),
        (row("a") + TASK + 'fallbacks = ["x"]', "x is named as a model"),
    ],
)
def test_invalid_catalog_is_rejected_with_a_reason(text, message):
    with pytest.raises(ModelCatalogInvalid, match=message):
        read_model_catalog(text=text)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"nothing": "gpt-5"}, "the task nothing"), ({"analysis.light": "gpt-9"}, "gpt-9 is named as a model")],
)
def test_invalid_setting_is_rejected_with_a_reason(setting, message):
    with pytest.raises(ModelCatalogInvalid, match=message):
        read_model_catalog(setting)


def test_models_of_unconfigured_providers_are_skipped():
    table = read_model_catalog(providers={"anthropic"})

    assert [model.provider for model in table.route(table.task("analysis.light"), TODAY)] == ["anthropic"]
    assert {model.provider for model in table.models} == {"anthropic"}


def test_task_without_a_configured_provider_raises_models_unavailable():
    table = read_model_catalog(providers={"anthropic"})

    with pytest.raises(ModelsUnavailable, match="embeddings"):
        table.candidates("embeddings", TODAY)
