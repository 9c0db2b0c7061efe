import asyncio
import os
import sys

from tests.conftest import PROJECT
from tests.support import until

HEARD = "select count(*) from traffic.workers where stopped_at is null and queues = '{runs}'"


async def test_worker_command_runs_until_sigterm(engine_addresses, engine_owner, tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "core.cli.main", "worker", "--queues", "runs"),
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT / "src"),
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": engine_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path),
        },
        stderr=asyncio.subprocess.PIPE,
    )
    await until(lambda: engine_owner.fetchval(HEARD), timeout_s=120)
    async for line in process.stderr:
        if b"engine_started" in line:
            break
    process.terminate()
    _, rest = await process.communicate()

    assert process.returncode == 0
    assert b"engine_stopped" in rest
    assert not await engine_owner.fetchval(HEARD)
