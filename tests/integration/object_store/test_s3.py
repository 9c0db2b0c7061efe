"""S3 object store: faults of the server, and requests to a working one."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import boto3
import msgspec
import pytest

from infrastructure.object_store.port import OBJECT_BYTES_MAX, ObjectStoreUnavailable
from infrastructure.object_store.s3 import S3Endpoint, S3ObjectStore, S3RetryLimits
from tests.integration.object_store.conftest import closing
from tests.integration.object_store.faulty_server import faulty_server
from tests.support import free_port

PROJECT = Path(__file__).parents[3]
HURRIED = S3RetryLimits(connect_s=0.5, read_s=0.3, attempts_max=1, deadline_s=2.0)
SLACK_S = 3.0  # allowance for a busy machine
CALLS = {
    "get": lambda store: store.get("one"),
    "put": lambda store: store.put("one", b"1"),
    "delete": lambda store: store.delete("one"),
    "probe": lambda store: store.probe(),
}
REASONS = {
    "hang": {"ReadTimeoutError"},
    "reset": {"ConnectionClosedError"},
    "500": {"InternalError", "500"},  # a HEAD response has no body for the code
    "503": {"SlowDown", "503"},
    "denied": {"AccessDenied", "403"},
    "no bucket": {"NoSuchBucket", "404"},
    "odd code": {"ClientError", "400"},
    "bare 403": {"403"},
    "html": {"502"},
    "nonsense": {"ConnectionClosedError"},
}


@pytest.fixture(scope="module")
async def faulty():
    async with faulty_server() as (server, port):
        server.port = port
        yield server


def access_to(port, host="127.0.0.1"):
    return S3Endpoint(
        bucket="objects",
        endpoint_url=f"http://{host}:{port}",
        access_key_id="canary-id",
        secret_access_key="canary-secret",
    )


@pytest.fixture(scope="module")
async def hurried_store(faulty):
    async with closing(S3ObjectStore(access_to(faulty.port), limits=HURRIED)) as store:
        # Loads boto3 before the measured calls.
        faulty.begin("<ListBucketResult/>")
        while True:
            try:
                await store.get("one")
                break
            except ObjectStoreUnavailable:
                continue
        yield store


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", REASONS)
async def test_fault_raises_object_store_unavailable_within_the_deadline(hurried_store, faulty, call, fault):
    faulty.begin(fault)
    begun_s = time.monotonic()

    with pytest.raises(ObjectStoreUnavailable) as refused:
        await CALLS[call](hurried_store)

    assert refused.value.reason in REASONS[fault]
    assert time.monotonic() - begun_s < HURRIED.deadline_s + SLACK_S
    assert faulty.requests == 1
    assert "canary" not in f"{refused.value!r} {refused.value.__cause__!r}"


@pytest.mark.parametrize("fault", ["half", "half a head"])
async def test_truncated_response_raises_object_store_unavailable(hurried_store, faulty, fault):
    faulty.begin(fault)

    with pytest.raises(ObjectStoreUnavailable):
        await hurried_store.get("one")


async def test_slow_response_ends_at_the_deadline(hurried_store, faulty):
    faulty.begin("drip")
    begun_s = time.monotonic()

    with pytest.raises(ObjectStoreUnavailable, match="Timeout"):
        await hurried_store.get("one")

    assert time.monotonic() - begun_s < HURRIED.deadline_s + SLACK_S


async def test_refused_connection_is_reported():
    async with closing(S3ObjectStore(access_to(free_port()), limits=S3RetryLimits(attempts_max=1))) as store:
        with pytest.raises(ObjectStoreUnavailable, match="EndpointConnectionError"):
            await store.get("one")


async def test_temporary_fault_is_retried_once(faulty):
    limits = S3RetryLimits(read_s=0.3, attempts_max=2)
    async with closing(S3ObjectStore(access_to(faulty.port), limits=limits)) as store:
        faulty.begin("503", "content")

        assert await store.get("one") == b"content"
        assert faulty.requests == 2


async def test_permanent_fault_is_not_tried_a_third_time(faulty):
    limits = S3RetryLimits(read_s=0.3, attempts_max=2)
    async with closing(S3ObjectStore(access_to(faulty.port), limits=limits)) as store:
        faulty.begin("reset")

        with pytest.raises(ObjectStoreUnavailable):
            await store.get("one")
        assert faulty.requests == 2


async def test_more_calls_than_threads_all_end_within_the_deadline(hurried_store, faulty):
    faulty.begin("hang")
    begun_s = time.monotonic()

    outcomes = await asyncio.gather(*(hurried_store.get("one") for _ in range(60)), return_exceptions=True)

    assert {type(outcome) for outcome in outcomes} == {ObjectStoreUnavailable}
    assert time.monotonic() - begun_s < HURRIED.deadline_s + SLACK_S


async def test_missing_bucket_is_not_a_missing_object(bucket_access):
    nowhere = msgspec.structs.replace(bucket_access, bucket="nowhere")
    async with closing(S3ObjectStore(nowhere)) as store:
        with pytest.raises(ObjectStoreUnavailable, match="NoSuchBucket"):
            await store.get("one")
        with pytest.raises(ObjectStoreUnavailable, match="404"):
            await store.probe()


async def test_empty_settings_are_read_from_the_environment(bucket_access, bucket_store, prefix, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket_access.endpoint_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    async with closing(S3ObjectStore(S3Endpoint(bucket=bucket_access.bucket))) as store:
        await store.put(prefix + "one", b"1")

    assert await bucket_store.get(prefix + "one") == b"1"


async def test_large_foreign_object_is_rejected(bucket_access, bucket_store, prefix):
    client = boto3.client(
        "s3",
        endpoint_url=bucket_access.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.put_object(Bucket=bucket_access.bucket, Key=prefix + "one", Body=bytes(OBJECT_BYTES_MAX + 1))

    with pytest.raises(ObjectStoreUnavailable, match="ObjectTooLarge"):
        await bucket_store.get(prefix + "one")


async def test_put_request_is_compatible_with_r2(faulty_head):
    """Path-style URL, region auto, and none of boto3's default checksums."""
    head = await faulty_head()

    assert head.startswith("PUT /objects/one HTTP/1.1")
    assert "/auto/s3/aws4_request" in head
    assert "x-amz-checksum" not in head.lower()
    assert "x-amz-sdk-checksum" not in head.lower()
    assert "aws-chunked" not in head.lower()


@pytest.fixture
async def faulty_head():
    """Returns a function that returns the head of a put request."""
    heads = []

    async def serve(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def put():
        port = server.sockets[0].getsockname()[1]
        async with closing(S3ObjectStore(access_to(port, "localhost"))) as store:
            await store.put("one", b"1")
        return heads[0]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield put
    server.close()


def test_repr_hides_the_secret():
    assert "canary" not in repr(access_to(1))


def test_boto3_is_imported_lazily():
    code = "import sys, infrastructure.object_store.s3 as b; print('boto3' in sys.modules)"

    said = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PROJECT / "src")},
        check=True,
        capture_output=True,
        text=True,
    )

    assert said.stdout == "False\n"
