"""Supervisor that starts the simulators on first use and restarts them after a crash."""

import asyncio
import os
import sys
from collections.abc import Sequence

import structlog

START_TIMEOUT_S = 60.0
# Only what Python needs to start; no secrets.
ENVIRONMENT = ("PATH", "PYTHONPATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")

log: structlog.stdlib.BoundLogger = structlog.get_logger("simulators")


class SimulatorsNotStarted(RuntimeError):
    pass


class Simulators:
    """One child process, which ends with ours: it reads from a pipe that only we hold open."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self._address = ""
        self._starting = asyncio.Lock()

    async def address(self) -> str:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                await self._start()
            return self._address

    async def close(self) -> None:
        """Kills the child process at once; it has no unfinished writes."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
        if process is not None:
            await process.communicate()

    async def _start(self) -> None:
        await self.close()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "simulators.process", *self._arguments),
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not reach it; it ends after us
        )
        assert self._process.stdout is not None, "asked for above"
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                self._address = (await self._process.stdout.readline()).decode().strip()
        except TimeoutError:
            self._address = ""
        if not self._address:
            await self.close()
            raise SimulatorsNotStarted("The simulators did not start.")
        log.info("simulators_started", address=self._address)
