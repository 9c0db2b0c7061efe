"""Detection of optional programs, and skipped tests where one is missing."""

import pytest

from tests.conftest import PROJECT
from tests.support.optional_programs import PROGRAMS, Probe, probe

DECIDING = [
    "tests/bench/tools.py",
    "tests/support/optional_programs.py",
    "tests/unit/scripts/test_optional_programs.py",
]


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A function that puts a program on an otherwise empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return put


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"uv"}))
@pytest.mark.usefixtures("programs")
def test_a_program_that_is_not_on_path_is_not_usable(name):
    assert probe.__wrapped__(name) == Probe(None, f"{name} is not installed")


@pytest.mark.parametrize(("name", "command"), [("docker", "docker"), ("bubblewrap", "bwrap")])
def test_a_program_that_is_installed_and_cannot_work_is_not_usable(programs, name, command):
    programs(command, "echo not permitted >&2; exit 1")

    assert probe.__wrapped__(name) == Probe(None, f"{name} is not usable: not permitted")


@pytest.mark.parametrize(("version", "is_usable"), [("14.9", False), ("15.1", True), ("18.4", True)])
def test_postgres_is_usable_from_the_version_that_migrations_require(programs, version, is_usable):
    path = programs("initdb", f"echo 'initdb (PostgreSQL) {version}'")

    assert probe.__wrapped__("postgres").path == (path if is_usable else None)


def test_a_program_is_probed_once():
    assert probe("docker") is probe("docker")


def test_no_other_module_decides_which_programs_are_usable():
    texts = {path.relative_to(PROJECT).as_posix(): path.read_text() for path in PROJECT.glob("tests/**/*.py")}

    assert sorted(path for path, text in texts.items() if "shutil.which" in text) == DECIDING
