"""Variables from AWS Secrets Manager with the environment as a fallback."""

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
    """Reads ``prefix + name`` from Secrets Manager, otherwise the environment variable.

    Secrets are cached for five minutes, so a rotation takes effect within that time. While the service is
    unavailable, the last value is used.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        prefix: str,
        names: tuple[str, ...],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        # Imported here: the imports take half a second, and most processes do not need them.
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
        self._cached: dict[str, tuple[str | None, float]] = {}
        self._lock = threading.Lock()
        self.failure: str | None = None  # error of the last call, for the health check

    def lookup(self, name: str) -> str | None:
        """Blocks on a cache miss. Thread-safe; one request per secret and five minutes."""
        if name not in self._names:
            return self._environ.get(name)
        with self._lock:
            value, until = self._cached.get(name, (None, 0.0))
            if self._now_s() >= until:
                value = self._fetch(name, value)
                self._cached[name] = (value, self._now_s() + (RETRY_S if self.failure else CACHE_S))
        return value if value is not None else self._environ.get(name)

    def _fetch(self, name: str, last_value: str | None) -> str | None:
        try:
            response = self._client.get_secret_value(SecretId=self._prefix + name)
        except self._client.exceptions.ResourceNotFoundException:
            self.failure = None
            return None
        except Exception as error:  # noqa: BLE001  botocore has no common base; none may stop a start
            self.failure = type(error).__name__
            log.warning("secret_not_read", secret=name, reason=self.failure)
            return last_value
        value = response.get("SecretString")
        self.failure = None if value is not None else "the secret is binary, not text"
        return value
