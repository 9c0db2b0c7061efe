"""The main use case on the command line, with a real server, a real engine and simulated providers."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from core.cli.main import main

TIMEOUT_S = 120  # the command would wait forever for a run without a worker


@pytest.fixture
async def oslira(start, place, kept_logging):  # noqa: ARG001
    """Runs a command against its own server as a new local user."""
    _, port = await start("serve", OSLIRA_SIMULATED_LATENCY="0")
    environ = {"OSLIRA_PORT": str(port), "OSLIRA_DATA_DIR": str(place.settings.data_dir)}

    async def run(*arguments):
        words = [*arguments, "--email", "typist@example.com"]
        work = asyncio.to_thread(CliRunner().invoke, main, words, env=environ)
        return await asyncio.wait_for(work, TIMEOUT_S)

    return run


@pytest.mark.battery
async def test_analysis_bulk_runs_and_leads_work_on_a_real_server(oslira, tmp_path):
    (tmp_path / "people.csv").write_text("username\nslow.kitchen\nprivate.person\nnot a name\n")

    analysis = await oslira("analyze", "@slow.kitchen", "--type", "deep")
    bulk = await oslira("bulk", str(tmp_path / "people.csv"), "--type", "light", "--yes")
    runs = await oslira("runs", "--json")
    leads = await oslira("leads", "--json")

    assert (analysis.exit_code, bulk.exit_code) == (0, 0), analysis.output + bulk.output
    assert "Created an example" in analysis.stderr
    for said in ("of 100", "provider: simulator", "Personality", "5 credits charged", "margin"):
        assert said in analysis.stdout
    assert "not a name" in bulk.stderr
    assert "1 credit charged" in bulk.stdout
    assert "private" in bulk.stdout
    found = [json.loads(line) for line in runs.stdout.splitlines()]
    assert [(run["kind"], run["status"]) for run in found] == [
        ("bulk_analysis", "completed"),
        ("deep_analysis", "completed"),
    ]
    assert [json.loads(line)["username"] for line in leads.stdout.splitlines()] == ["slow.kitchen"]
