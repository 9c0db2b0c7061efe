"""Local object store: crashes, full disks and foreign files."""

import asyncio
import os
import resource
import sys
import time
from pathlib import Path

import pytest

from infrastructure.object_store.local import DRAFT_AGE_MAX_S, PURGE_INTERVAL_S, LocalObjectStore
from infrastructure.object_store.port import OBJECT_BYTES_MAX, ObjectStoreUnavailable
from tests.integration.object_store.conftest import closing
from tests.support import until

PROJECT = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("endless_writer.py")


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "objects"


@pytest.fixture
def now():
    """Mutable clock, in seconds."""
    return [time.time()]


@pytest.fixture
async def timed_store(folder, now):
    async with closing(LocalObjectStore(folder, now_s=lambda: now[0])) as store:
        yield store


async def test_killed_writer_leaves_a_complete_object(folder_store, folder):
    for _ in range(4):
        before = await folder_store.get("one")
        writer = await asyncio.create_subprocess_exec(
            sys.executable, WRITER, folder, "one", env={"PYTHONPATH": str(PROJECT / "src")}
        )
        reads = [await until(lambda before=before: changed(folder_store, before))]
        reads += [await folder_store.get("one") for _ in range(40)]
        writer.kill()
        await writer.wait()
        reads.append(await folder_store.get("one"))

        assert {(len(data), len(set(data))) for data in reads} == {(300_000, 1)}


async def changed(store, before):
    data = await store.get("one")
    return data if data != before else None


async def test_incomplete_files_are_removed_after_an_hour(timed_store, folder, now):
    await timed_store.put("one", b"1")
    old, young = folder / "incoming" / "old", folder / "incoming" / "young"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    now[0] += PURGE_INTERVAL_S
    os.utime(old, (now[0] - DRAFT_AGE_MAX_S - 1,) * 2)
    os.utime(young, (now[0] - DRAFT_AGE_MAX_S + 1,) * 2)

    await timed_store.put("two", b"2")

    assert (old.exists(), young.exists()) == (False, True)
    assert await timed_store.get("one") == b"1"


async def test_new_process_removes_incomplete_files_at_its_first_write(folder_store, folder):
    old = folder / "incoming" / "old"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"half")
    os.utime(old, (0, 0))

    await folder_store.put("one", b"1")

    assert not old.exists()


async def test_write_leaves_no_temporary_file(folder_store, folder):
    for _ in range(3):
        await folder_store.put("one", b"1")
    await folder_store.probe()

    assert [path.name for path in files(folder)] == ["one"]


@pytest.fixture
def no_room():
    """Limits files to a kilobyte, so that the kernel rejects a longer write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("no_room")
async def test_failed_write_reports_errno_and_leaves_no_file(folder_store, folder):
    await folder_store.put("one", b"1")

    with pytest.raises(ObjectStoreUnavailable, match="EFBIG"):
        await folder_store.put("one", bytes(100_000))

    assert await folder_store.get("one") == b"1"
    assert [path.name for path in files(folder)] == ["one"]


async def test_concurrent_writes_of_one_key_leave_one_complete_object(folder_store):
    versions = [bytes([number]) * 50_000 for number in range(20)]

    await asyncio.gather(*(folder_store.put("one", version) for version in versions))

    assert await folder_store.get("one") in versions


async def test_temporary_file_is_removed_when_the_rename_fails(folder_store, folder):
    await folder_store.put("one", b"1")
    (place,) = files(folder)
    place.unlink()
    place.mkdir()

    with pytest.raises(ObjectStoreUnavailable, match="EISDIR"):
        await folder_store.put("one", b"2")

    assert files(folder) == []


async def test_error_of_an_unusable_folder_does_not_contain_the_path(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    async with closing(LocalObjectStore(tmp_path / "file" / "objects")) as store:
        for attempt in (store.put("one", b"1"), store.get("one"), store.probe()):
            with pytest.raises(ObjectStoreUnavailable) as refused:
                await attempt

            assert refused.value.reason == "ENOTDIR"
            assert str(tmp_path) not in str(refused.value)


async def test_reads_before_the_first_write_create_no_folder(folder_store, folder):
    assert await folder_store.get("one") is None
    await folder_store.delete("one")
    assert not folder.exists()


async def test_file_that_is_too_large_is_not_read(folder_store, folder):
    await folder_store.put("one", b"1")
    (place,) = files(folder)
    os.truncate(place, OBJECT_BYTES_MAX + 1)

    with pytest.raises(ObjectStoreUnavailable, match="ObjectTooLarge"):
        await folder_store.get("one")


async def test_objects_are_distributed_over_folders(folder_store, folder):
    await asyncio.gather(*(folder_store.put(f"n{number}", b"") for number in range(200)))

    places = [path.relative_to(folder) for path in files(folder)]
    assert {len(place.parts) for place in places} == {3}
    assert len({place.parts[0] for place in places}) > 100
