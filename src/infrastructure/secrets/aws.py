"""Variables that AWS Secrets Manager may hold instead of the environment."""

import threading
import time
from collections.abc import Callable, Mapping

import structlog

CACHE_S = 300.0
RETRY_S = 10.0  # after a failure

log: structlog.stdlib.BoundLogger = structlog.get_logger("secrets")


class NoRegion(RuntimeError):
    pass


class AwsSecrets:
    """``prefix + name`` in Secrets Manager, else the environment's own variable.

    Each secret is remembered for five minutes, so a rotation is taken up within that time. While the
    service does not answer, the last known value serves.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        prefix: str,
        names: tuple[str, ...],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        # Imported here: they take half a second, and most processes never ask.
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import NoRegionError  # noqa: PLC0415

        timeouts = Config(connect_timeout=3, read_timeout=5, retries={"max_attempts": 2})
        self._environ = environ
        self._prefix = prefix
        self._names = frozenset(names)
        try:
            self._client = boto3.client("secretsmanager", config=timeouts)
        except NoRegionError as error:
            raise NoRegion(str(error)) from None
        self._now_s = now_s
        self._known: dict[str, tuple[str | None, float]] = {}
        self._lock = threading.Lock()
        self.failure: str | None = None  # why the last call failed, for the health page

    def lookup(self, name: str) -> str | None:
        """Blocks when it has to ask. Thread-safe; one question per secret and five minutes."""
        if name not in self._names:
            return self._environ.get(name)
        with self._lock:
            value, until = self._known.get(name, (None, 0.0))
            if self._now_s() >= until:
                value = self._ask(name, value)
                self._known[name] = (value, self._now_s() + (RETRY_S if self.failure else CACHE_S))
        return value if value is not None else self._environ.get(name)

    def _ask(self, name: str, last_known: str | None) -> str | None:
        try:
            answer = self._client.get_secret_value(SecretId=self._prefix + name)
        except self._client.exceptions.ResourceNotFoundException:
            self.failure = None
            return None
        except Exception as error:  # noqa: BLE001  botocore has no common base; none may stop a start
            self.failure = type(error).__name__
            log.warning("secret_not_read", secret=name, reason=self.failure)
            return last_known
        value = answer.get("SecretString")
        self.failure = None if value is not None else "the secret is binary, not text"
        return value
