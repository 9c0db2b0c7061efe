"""Every domain error: its text, its facts and the calls that raise it."""

import ast
import pickle
import pkgutil
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

import core
import features
import infrastructure
import shared
from shared.errors import DomainError

SOURCE = Path(shared.__file__).parents[1]


def subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def error_classes():
    for package in (core, features, infrastructure, shared):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    found = {kind for kind in subclasses(DomainError) if "code" in vars(kind)}
    return sorted((kind for kind in found if not kind.__module__.startswith("tests.")), key=str)


def fact_names(kind):
    return {name for _, name, _, _ in Formatter().parse(kind.text) if name} | set(kind.public)


KINDS = error_classes()
ERRORS = [kind(**dict.fromkeys(fact_names(kind), 7)) for kind in KINDS]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_pickled_error_keeps_its_text_and_facts(error):
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert (str(copy), copy.facts, copy.retry_after_s) == (str(error), error.facts, error.retry_after_s)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_text_contains_the_facts(error):
    assert str(error)
    assert "{" not in str(error)
    assert set(error.facts) == set(error.public)
    assert all(str(value) in str(error) for value in error.facts.values())


def test_codes_are_unique():
    assert len({kind.code for kind in KINDS}) == len(KINDS) > 100


def created(tree):
    """The names of the errors that the module creates, with the keyword arguments and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, {keyword.arg for keyword in node.keywords}, node.lineno
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name):
            yield node.exc.id, set(), node.lineno


def test_calls_pass_the_facts_that_the_text_needs():
    """The type checker cannot compare keyword arguments with the names in a text."""
    wanted = {kind.__name__: fact_names(kind) - {"retry_after_s"} for kind in KINDS}

    wrong = [
        f"{path}:{line} {name} {passed}"
        for path in SOURCE.rglob("*.py")
        for name, passed, line in created(ast.parse(path.read_text()))
        if name in wanted and wanted[name] != passed - {"retry_after_s"}
    ]

    assert wrong == []
