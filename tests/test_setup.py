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
    """The names with their extras, as pip compares them: psycopg[binary] is not psycopg."""
    pinned = (Requirement(name) for name in PIN.findall((PROJECT / lock).read_text()))
    return {(canonicalize_name(one.name), frozenset(one.extras)) for one in pinned}


def required_extras(name, extras):
    """What an installed package requires with extras, for this Python."""
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
    """The set-up's own function, with this uv first on PATH."""
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


@pytest.mark.battery
@pytest.mark.parametrize("lock", LOCKS)
def test_pip_alone_installs_what_a_lock_names(lock, tmp_path, broken_uv):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)

    install(environment, lock, broken_uv)

    assert subprocess.run([environment / "bin" / "python", "-m", "pip", "check"], check=False).returncode == 0
