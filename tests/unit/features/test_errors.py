"""Every error of every slice: it outlives a process, and tells a person what the facts are."""

import inspect
import pickle
import pkgutil
from importlib import import_module

import pytest

import features
import shared
from shared.errors import DomainError

SAMPLES = {int: 7, str: "run:1"}


def modules():
    for package in (features, shared):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield import_module(module.name)


def example(kind):
    """An error built from facts of the right types, by position."""
    if kind.__init__ is DomainError.__init__:
        return kind()
    parameters = list(inspect.signature(kind.__init__, eval_str=True).parameters.values())[1:]
    return kind(*(SAMPLES.get(parameter.annotation, "credits:read") for parameter in parameters))


KINDS = sorted(
    {
        kind
        for module in modules()
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, DomainError) and "code" in vars(kind)
    },
    key=lambda kind: kind.code,
)
ERRORS = [example(kind) for kind in KINDS]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_survives_pickling_with_its_text_and_facts(error):
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert (str(copy), copy.facts, copy.args) == (str(error), error.facts, error.args)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_errors_text_is_prose_that_tells_its_facts(error):
    assert str(error)
    assert all(str(fact) in str(error) for fact in error.args)


def test_each_error_has_a_code_of_its_own():
    assert len({kind.code for kind in KINDS}) == len(KINDS) > 30
