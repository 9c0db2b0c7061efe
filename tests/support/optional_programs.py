"""Optional programs that some tests start, each probed once per process.

A test marked ``needs_program(NAME)`` is skipped, with the reason, where the program is not usable.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROBE_TIMEOUT_S = 20


class Program(NamedTuple):
    """``commands``: alternatives; ``probe``: the arguments with which a usable one exits 0, None where it has
    none, and prints its version; ``package``: its name in Debian and Ubuntu, None where installing a package
    is not enough.
    """

    commands: tuple[str, ...]
    probe: tuple[str, ...] | None = ("--version",)
    package: str | None = None
    version_min: int = 0


PROGRAMS = {
    "bubblewrap": Program(("bwrap",), ("--ro-bind", "/", "/", "--unshare-all", "true"), "bubblewrap"),
    "chromium": Program(("chromium", "chromium-browser", "google-chrome"), package="chromium"),
    "docker": Program(("docker",), ("version", "--format", "{{.Server.Version}}")),  # fails without an engine
    "haproxy": Program(("haproxy",), ("-v",), "haproxy"),
    "node": Program(("node",), package="nodejs"),
    "pgbouncer": Program(("pgbouncer",), package="pgbouncer"),
    "postgres": Program(("initdb",), package="postgresql", version_min=15),
    "uv": Program(("uv",)),  # scripts/_setup installs it
    "wrk": Program(("wrk",), None, "wrk"),
}


class Probe(NamedTuple):
    """The program's path, or the reason why it is not usable."""

    path: Path | None
    reason: str = ""


class Unusable(Exception):
    pass


@cache
def probe(name: str) -> Probe:
    program = PROGRAMS[name]
    path = _debian_initdb() if name == "postgres" else None
    path = path or _find(program.commands)
    if path is None:
        return Probe(None, f"{name} is not installed")
    try:
        _check(path, program)
    except Unusable as problem:
        return Probe(None, f"{name} is not usable: {problem}")
    return Probe(path)


def path_of(name: str) -> Path:
    """Returns the path, for tests that are marked with the program's name."""
    path, reason = probe(name)
    assert path is not None, reason
    return path


def _find(commands: tuple[str, ...]) -> Path | None:
    """Searches PATH and the folder of this Python, because uv is in the lock."""
    folders = f"{os.environ.get('PATH', os.defpath)}:{Path(sys.executable).parent}"
    return next((Path(path) for command in commands if (path := shutil.which(command, path=folders))), None)


def _debian_initdb() -> Path | None:
    """Debian does not put initdb on PATH, but pg_createcluster of the same package."""
    if shutil.which("pg_createcluster") is None:
        return None
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max(found, key=lambda path: int(path.parts[-3]), default=None)


def _check(path: Path, program: Program) -> None:
    if program.probe is None:
        return
    command = [path, *program.probe]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(str(error)) from None
    if done.returncode != 0:
        raise Unusable((done.stderr or done.stdout).strip() or f"exit code {done.returncode}")
    if program.version_min and int(re.findall(r"\d+", done.stdout)[0]) < program.version_min:
        raise Unusable(f"version {program.version_min} or later is required")


def main() -> None:
    """Print the packages of the programs that are not usable, for scripts/battery."""
    for name, program in PROGRAMS.items():
        if program.package and probe(name).path is None:
            sys.stdout.write(f"{program.package}\n")


if __name__ == "__main__":
    main()
