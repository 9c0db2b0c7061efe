"""Environment of a benchmark run: a folder and a PostgreSQL server, both removed afterwards."""

import logging
import os
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from core.settings.settings import SECRETS, Settings
from core.wiring.bootstrap import DatabaseUrls, apply_migrations, database_addresses, read_runtime, start_logs

PROJECT = Path(__file__).parents[2]


class BenchFailed(RuntimeError):
    """A figure could not be measured; the message is the reason."""


class ProgramMissing(BenchFailed):
    """A figure cannot be measured on this machine; the others can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    folder: Path
    environ: Mapping[str, str]
    settings: Settings
    addresses: DatabaseUrls
    owner: asyncpg.Connection


@asynccontextmanager
async def open_place() -> AsyncGenerator[Place]:
    parent = PROJECT / ".data" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        environ = _clean_environment(Path(folder))
        settings = read_runtime(environ).settings
        start_logs(settings, level=logging.WARNING)
        async with database_addresses(settings) as addresses:
            await apply_migrations(settings, addresses, {})
            owner = await asyncpg.connect(addresses.owner)
            try:
                await _check_durability(owner)
                # Rate limits must not limit the measurement.
                await owner.execute("update public.rate_limits set requests_max = 1000000000")
                yield Place(
                    folder=Path(folder),
                    environ=environ,
                    settings=settings,
                    addresses=addresses,
                    owner=owner,
                )
            finally:
                await owner.close()


def _clean_environment(folder: Path) -> dict[str, str]:
    """Returns our environment without Oslira's configuration: every run measures the defaults."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OSLIRA_") and name not in SECRETS
    }
    return {**inherited, "OSLIRA_ENVIRONMENT": "local", "OSLIRA_DATA_DIR": str(folder)}


async def _check_durability(owner: asyncpg.Connection) -> None:
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        value = await owner.fetchval("select current_setting($1)", name)
        if value != "on":
            raise BenchFailed(f"{name} is {value}: spends that a power cut undoes are not worth measuring.")
