"""Check that the benchmark starts; its measurements are run by hand."""

import subprocess
import sys

from tests.conftest import PROJECT


def test_benchmark_starts_and_lists_its_rows():
    result = subprocess.run(
        [sys.executable, PROJECT / "tests" / "bench" / "bench.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )

    rows = (
        "empty-route|peer|door|keys|rls|rls-read|rls-own-pool|spends|history"
        "|gateway|fan-out|profile-hit|memory|outage"
        "|start|start-rate|poll|deep|engine|bulk|cached-light|cached-profile"
        "|enqueue|enqueue-spread|dequeue|dequeue-spread|worker-memory|webhook-intake|webhook-rate|webhook-storm"
        "|procrastinate|procrastinate-rate|renewal|renewal-memory"
    )
    assert f"[{rows}]" in "".join(result.stdout.split())
