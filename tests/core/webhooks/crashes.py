"""A session that dies after its nth statement, as a process does: no word, no rollback, no second thought."""

import os
import signal

from infrastructure.database.clients import AdminClient


class Crash(BaseException):
    """Not an Exception: nobody on the way may take care of it."""


def fall_over():
    raise Crash


def kill_process():
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingSession(AdminClient):
    def __init__(self, database, statements_max, crash=fall_over):
        super().__init__(database._admin_pool, "tests")  # noqa: SLF001  the application has no such session
        self._left = statements_max
        self._crash = crash

    async def fetch(self, statement, *args):
        rows = await super().fetch(statement, *args)
        self._left -= 1
        if self._left == 0:
            self._crash()
        return rows
