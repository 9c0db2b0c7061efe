"""CPU time and memory of processes, as counted by the kernel."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1_000_000
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class _Stat(NamedTuple):
    parent: int
    own_s: float
    ended_children_s: float  # children that it has reaped


def resident_mb(process_id: int | str) -> float:
    return int((PROC / str(process_id) / "statm").read_text().split()[1]) * PAGE_MB


def processor_s(process_id: int) -> float:
    """Returns the CPU time of all its threads so far."""
    return _stat(process_id).own_s


def postgres_processor_s(backend_id: int) -> float:
    """Returns the CPU time of the whole server of this backend, including ended sessions."""
    server = _stat(backend_id).parent
    stat = _stat(server)
    return stat.own_s + stat.ended_children_s + sum(child.own_s for child in _children(server))


def _children(process_id: int) -> Iterator[_Stat]:
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                stat = _stat(int(folder.name))
            except (FileNotFoundError, ProcessLookupError):
                continue  # the process has ended meanwhile
            if stat.parent == process_id:
                yield stat


def _stat(process_id: int) -> _Stat:
    # The program's name before the last bracket may contain any character.
    fields = (PROC / str(process_id) / "stat").read_text().rpartition(")")[2].split()
    own, system, childrens_own, childrens_system = (int(field) * TICK_S for field in fields[11:15])
    return _Stat(int(fields[1]), own + system, childrens_own + childrens_system)
