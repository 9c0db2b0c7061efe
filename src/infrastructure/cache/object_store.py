"""Whether objects can be kept: in a folder here, or in a bucket (R2, S3)."""

import asyncio
import tempfile
from pathlib import Path


async def probe_folder(folder: Path) -> str:
    await asyncio.to_thread(_write_and_remove, folder)
    return f"folder {folder.name}"


async def probe_bucket(bucket: str) -> str:
    await asyncio.to_thread(_head, bucket)
    return f"bucket {bucket}"


def _write_and_remove(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"probe")


def _head(bucket: str) -> None:
    # Imported here: they take half a second, and a folder does without them.
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    timeouts = Config(connect_timeout=2, read_timeout=3, retries={"max_attempts": 1})
    boto3.client("s3", config=timeouts).head_bucket(Bucket=bucket)
