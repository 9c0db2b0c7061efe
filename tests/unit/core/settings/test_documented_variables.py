"""docs/configuration.md and .env.example list exactly the variables that the settings read."""

import re

import pytest

from core.settings.settings import HOSTS, SECRETS, Settings, read_settings
from tests.conftest import PROJECT

EXAMPLE = (PROJECT / ".env.example").read_text("utf-8")
EXAMPLE_VALUES = dict(line.split("=", 1) for line in EXAMPLE.splitlines() if line and line[0] != "#")


@pytest.fixture
def variables():
    """The variables that are read from an empty environment, except those of hosting platforms."""
    names = []
    read_settings(names.append)
    return set(names) - set(HOSTS)


def test_configuration_page_lists_every_variable_and_no_other(variables):
    rows = re.findall(r"(?m)^\| (`[A-Z].*?) \|", (PROJECT / "docs/configuration.md").read_text("utf-8"))
    documented = [name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)]

    assert sorted(documented) == sorted(variables)


def test_example_file_sets_every_variable_once_and_no_other(variables):
    names = re.findall(r"(?m)^([A-Z_]+)=", EXAMPLE)

    assert sorted(names) == sorted(variables)


def test_example_file_contains_the_defaults():
    assert read_settings(EXAMPLE_VALUES.get) == Settings()


def test_secrets_of_the_example_file_are_empty():
    assert {EXAMPLE_VALUES[name] for name in SECRETS} == {""}
