"""Database session that crashes after its nth statement, without cleanup, as a killed process does."""

import os
import signal

from infrastructure.database.clients import AdminClient


class Crash(BaseException):
    """A BaseException, so that no error handler catches it."""


def fall_over():
    raise Crash


def kill_process():
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingSession(AdminClient):
    def __init__(self, database, statements_max, crash=fall_over):
        super().__init__(database._admin_pool, "tests")  # noqa: SLF001  there is no public constructor for this
        self._left = statements_max
        self._crash = crash

    async def fetch(self, statement, *args):
        rows = await super().fetch(statement, *args)
        self._left -= 1
        if self._left == 0:
            self._crash()
        return rows
