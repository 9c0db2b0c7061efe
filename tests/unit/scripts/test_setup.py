"""Set-up of the environments: locks that pip accepts by itself, and the fallback from uv to pip."""

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import PROJECT

LOCKS = ["requirements.lock", "requirements-dev.lock", "tests/bench/peer/requirements.lock"]
PIN = re.compile(r"^([\w.-]+(?:\[[\w, -]+\])?)==", re.MULTILINE)


def pins_of(lock):
    """Returns the names with their extras, as pip compares them: psycopg[binary] is not psycopg."""
    pinned = (Requirement(name) for name in PIN.findall((PROJECT / lock).read_text()))
    return {(canonicalize_name(one.name), frozenset(one.extras)) for one in pinned}


def required_extras(name, extras):
    """Returns what an installed package requires with these extras, for this Python."""
    try:
        found = [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:  # for another system or version
        return set()
    return {
        (canonicalize_name(one.name), frozenset(one.extras))
        for one in found
        if one.extras
        and (one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in {"", *extras}))
    }


@pytest.mark.parametrize("lock", LOCKS[:2])
def test_each_extra_that_a_locked_package_requires_is_pinned_by_its_name(lock):
    pins = pins_of(lock)

    missing = set().union(*(required_extras(name, extras) for name, extras in pins)) - pins

    assert missing == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_a_hash_for_each_pin_and_names_no_registry(lock):
    text = (PROJECT / lock).read_text()

    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]

    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def install(environment, lock, uv):
    """Runs the set-up's own function, with this uv first on PATH."""
    subprocess.run(
        ["bash", "-euc", '. scripts/_setup; install "$@"', "bash", environment, lock],
        cwd=PROJECT,
        env={**os.environ, "PATH": f"{uv.parent}:{os.environ['PATH']}"},
        check=True,
    )


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def broken_uv(tmp_path):
    return script(tmp_path / "broken" / "uv", "exit 2")


def test_uv_trusts_the_systems_certificate_authorities(tmp_path):
    uv = script(tmp_path / "bin" / "uv", f'echo "$UV_SYSTEM_CERTS $*" >{tmp_path}/calls')
    script(tmp_path / "bin" / "python", "exit 0")

    install(tmp_path, "requirements.lock", uv)

    assert (tmp_path / "calls").read_text().startswith("true pip install")


def test_pip_installs_the_lock_where_uv_fails(tmp_path, broken_uv):
    script(tmp_path / "bin" / "python", f'echo "$*" >>{tmp_path}/calls')

    install(tmp_path, "requirements.lock", broken_uv)

    *_, last = (tmp_path / "calls").read_text().splitlines()
    assert last.startswith("-m pip install")
    assert last.endswith("--require-hashes -r requirements.lock")


@pytest.fixture
def ci(tmp_path):
    """A function that runs .ci/run in a copied project and returns its output and the commands it called."""
    home = tmp_path / "home"
    note = f'echo "$HOME $(command -v by-hand) $PIP_CONFIG_FILE $*" >>{tmp_path}/calls'
    script(home / ".config" / "pip" / "pip.conf", "")
    tool = script(tmp_path / "installed" / "by-hand", "exit 0")
    script(tmp_path / "scripts" / "test", f'{note}\nls -ld "$HOME"\nreadlink -f "$(command -v python3)"')
    script(tmp_path / ".venv" / "bin" / "python", note)
    copy = script(tmp_path / ".ci" / "run", (PROJECT / ".ci" / "run").read_text().partition("\n")[2])
    cleared = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "XDG_"))}
    environ = {**cleared, "HOME": str(home), "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    environ["PYTHON"] = sys.executable

    def run(*arguments):
        done = subprocess.run(
            ["bash", copy, *arguments], env=environ, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines(), (tmp_path / "calls").read_text().splitlines()

    return run


def test_ci_hides_tools_installed_by_hand_and_then_runs_what_needs_them(ci, tmp_path):
    _, (hidden, full) = ci("-k", "ledger")

    home = tmp_path / "home"
    assert hidden.endswith(f"/home  {home}/.config/pip/pip.conf -k ledger")
    assert not hidden.startswith(f"{home} ")
    assert full.startswith(
        f"{home} {tmp_path}/installed/by-hand  -m pytest -m needs_program and not battery -k"
    )


def test_ci_links_the_interpreter_and_opens_home_to_the_databases_user(ci):
    (home, python), _ = ci()

    assert home.startswith("drwxr-xr-x")
    assert python == os.path.realpath(sys._base_executable)  # noqa: SLF001


@pytest.mark.battery
@pytest.mark.parametrize("lock", LOCKS)
def test_pip_alone_installs_what_a_lock_names(lock, tmp_path, broken_uv):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)

    install(environment, lock, broken_uv)

    assert subprocess.run([environment / "bin" / "python", "-m", "pip", "check"], check=False).returncode == 0
