import uuid
from contextlib import asynccontextmanager

import pytest
from moto.server import ThreadedMotoServer

from infrastructure.object_store.local import LocalObjectStore
from infrastructure.object_store.s3 import S3Endpoint, S3ObjectStore
from tests.fakes.object_store import MemoryStore


@asynccontextmanager
async def closing(store):
    yield store
    await store.close()


@pytest.fixture(scope="session")
def bucket_server():
    """S3-compatible server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def bucket_access(bucket_server):
    """A bucket for this session."""
    import boto3  # noqa: PLC0415  slow; most sessions do not need it

    access = S3Endpoint(
        bucket=f"objects-{uuid.uuid4().hex}",
        endpoint_url=bucket_server,
        access_key_id="test",
        secret_access_key="test",
    )
    client = boto3.client(
        "s3",
        endpoint_url=bucket_server,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket=access.bucket)
    return access


@pytest.fixture(scope="session")
async def bucket_store(bucket_access):
    async with closing(S3ObjectStore(bucket_access)) as store:
        yield store


@pytest.fixture
async def folder_store(tmp_path):
    async with closing(LocalObjectStore(tmp_path / "objects")) as store:
        yield store


@pytest.fixture
def memory_store():
    return MemoryStore()


@pytest.fixture(params=["memory", "folder", "bucket"])
def store(request):
    """Each of the stores in turn: all give the same guarantees."""
    return request.getfixturevalue(f"{request.param}_store")


@pytest.fixture
def prefix():
    """Unique per test, because the bucket is shared."""
    return f"tests/{uuid.uuid4().hex}/"
