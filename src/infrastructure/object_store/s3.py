"""Object store in a bucket of Cloudflare R2 or S3."""

import asyncio
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar  # noqa: TID251  boto3's types are not installed in production

import msgspec

from infrastructure.object_store.port import (
    OBJECT_BYTES_MAX,
    ObjectStore,
    ObjectStoreUnavailable,
    check_key,
    check_size,
)
from infrastructure.resilience.daemon_threads import DaemonThreadPool

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

THREADS = 16
MISSING = frozenset({"NoSuchKey", "404"})
CODE = re.compile(r"[A-Za-z0-9]{1,60}")


class S3Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """boto3 reads empty fields from the environment."""

    bucket: str
    endpoint_url: str = ""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = ""

    def __repr__(self) -> str:
        return f"S3Endpoint(bucket={self.bucket!r})"


class S3RetryLimits(msgspec.Struct, frozen=True, kw_only=True):
    connect_s: float = 2.0
    read_s: float = 3.0  # between two chunks of a response
    attempts_max: int = 2
    deadline_s: float = 8.0  # total: waiting for a thread, first import of boto3, all attempts


class S3ObjectStore(ObjectStore):
    """A call ends at the deadline even if its thread does not: a server may send a byte per second for any
    length of time.
    """

    def __init__(self, endpoint: S3Endpoint, *, limits: S3RetryLimits | None = None) -> None:
        self._endpoint = endpoint
        self._limits = limits or S3RetryLimits()
        self._threads = DaemonThreadPool("bucket", size=THREADS)
        self._bucket: _Bucket | None = None
        self._connecting = threading.Lock()

    async def get(self, key: str) -> bytes | None:
        check_key(key)
        return await self._run(lambda bucket: bucket.get(key))

    async def put(self, key: str, data: bytes) -> None:
        check_key(key)
        check_size(len(data))
        await self._run(lambda bucket: bucket.put(key, data))

    async def delete(self, key: str) -> None:
        check_key(key)
        await self._run(lambda bucket: bucket.delete(key))

    async def probe(self) -> str:
        await self._run(lambda bucket: bucket.head())
        return f"bucket {self._endpoint.bucket}"

    async def close(self) -> None:
        self._threads.close()

    async def _run(self, call: Callable[["_Bucket"], T]) -> T:
        try:
            async with asyncio.timeout(self._limits.deadline_s):
                return await self._threads.run(lambda: self._call(call))
        except TimeoutError:
            raise ObjectStoreUnavailable(reason="Timeout") from None

    def _call(self, call: Callable[["_Bucket"], T]) -> T:
        try:
            return call(self._connected())
        except ObjectStoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  botocore, urllib3 and the parsers have no common base
            # Without cause and text, because they contain URLs and a proxy's response.
            raise ObjectStoreUnavailable(reason=_code(error) or type(error).__name__) from None

    def _connected(self) -> "_Bucket":
        with self._connecting:
            if self._bucket is None:
                self._bucket = _Bucket(self._endpoint, self._limits)
            return self._bucket


class _Bucket:
    """The blocking calls. boto3's client is thread-safe."""

    def __init__(self, endpoint: S3Endpoint, limits: S3RetryLimits) -> None:
        # Imported here, in a thread: the imports take two seconds, and LocalObjectStore does not need them.
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        config = Config(
            connect_timeout=limits.connect_s,
            read_timeout=limits.read_s,
            retries={"mode": "standard", "total_max_attempts": limits.attempts_max},
            max_pool_connections=THREADS,
            # R2 uses path-style URLs and does not support the checksums that boto3 adds by default.
            s3={"addressing_style": "path"} if endpoint.endpoint_url else None,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        self._name = endpoint.bucket
        # A separate session, because the default one is not thread-safe.
        self._client: S3Client = boto3.session.Session().client(
            "s3",
            endpoint_url=endpoint.endpoint_url or None,
            region_name=endpoint.region or ("auto" if endpoint.endpoint_url else None),
            aws_access_key_id=endpoint.access_key_id or None,
            aws_secret_access_key=endpoint.secret_access_key or None,
            config=config,
        )

    def get(self, key: str) -> bytes | None:
        try:
            response = self._client.get_object(Bucket=self._name, Key=key)
        except self._client.exceptions.ClientError as error:
            if _code(error) in MISSING:
                return None
            raise
        with response["Body"] as body:
            if "ContentLength" not in response:  # a truncated body could not be detected
                raise ObjectStoreUnavailable(reason="NoContentLength")
            data = body.read(OBJECT_BYTES_MAX + 1)
            check_size(len(data))
            body.read()  # raises if the body was truncated
            return data

    def put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=self._name, Key=key, Body=data)

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self._name, Key=key)

    def head(self) -> None:
        self._client.head_bucket(Bucket=self._name)


def _code(error: Exception) -> str | None:
    """The service's error code; None for an error that is not a response of the service."""
    response: dict[str, dict[str, str]] | None = getattr(error, "response", None)
    code = str((response or {}).get("Error", {}).get("Code"))
    return code if response and CODE.fullmatch(code) else None
