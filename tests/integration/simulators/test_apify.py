"""Simulated Apify API, called by Apify's own client."""

from datetime import UTC, datetime, timedelta

import pytest
from apify_client.errors import ApifyApiError, NotFoundError

from simulators.instagram.instagram_items import profile_item
from simulators.instagram.profiles import KINDS
from tests.support import until

pytestmark = pytest.mark.usefixtures("simulators")

PROFILES, POSTS = "apify/instagram-profile-scraper", "apify/instagram-scraper"
LONG = {"route": "/apify/run", "distribution": "fixed", "ms": 3_600_000}


@pytest.fixture
def start(apify):
    """A function: usernames to a started run."""

    async def start(*names, actor=PROFILES, wait=10, run_input=None, **options):
        run_input = run_input or {"usernames": list(names)}
        return await apify.actor(actor).start(run_input=run_input, wait_for_finish=wait, **options)

    return start


@pytest.fixture
def look(start, apify):
    """A function: usernames to the found items."""

    async def look(*names, **options):
        run = await start(*names, **options)
        return (await apify.dataset(run.default_dataset_id).list_items()).items

    return look


async def test_finished_run_reports_its_duration_and_cost(start):
    run = await start("ada.lovely")

    assert (run.status, run.exit_code) == ("SUCCEEDED", 0)
    assert run.usage_total_usd == 0.0026
    assert run.stats.compute_units >= 0
    assert run.finished_at >= run.started_at


@pytest.mark.parametrize("name", ["ada.lovely", *KINDS])
async def test_username_has_the_same_profile_in_every_process(look, name):
    """The hash seed of this process differs from that of the simulators."""
    assert await look(name) == [profile_item(name, 12, datetime.now(UTC))]


async def test_profile_has_all_fields(look):
    (item,) = await look("ada.lovely")

    assert (item["username"], item["private"], len(item["latestPosts"])) == ("ada.lovely", False, 12)
    assert 200 <= item["followersCount"] <= 5_000_000


async def test_post_count_is_the_requested_one(look):
    (item,) = await look(run_input={"usernames": ["ada.lovely"], "resultsLimit": 50})

    assert len({post["id"] for post in item["latestPosts"]}) == 50
    times = [post["timestamp"] for post in item["latestPosts"]]
    assert times == sorted(times, reverse=True)


async def test_other_actor_returns_posts_or_details_by_address(look):
    address = {"directUrls": ["https://www.instagram.com/ada.lovely/"], "resultsLimit": 30}

    posts = await look(actor=POSTS, run_input={**address, "resultsType": "posts"})
    (details,) = await look(actor=POSTS, run_input={**address, "resultsType": "details"})

    assert [post["ownerUsername"] for post in posts] == ["ada.lovely"] * 30
    assert details["username"] == "ada.lovely"


async def test_a_private_profile_shows_counts_and_no_posts(look):
    (item,) = await look("private.ada")

    assert (item["private"], "latestPosts" in item, item["followersCount"] > 0) == (True, False, True)


@pytest.mark.parametrize(
    ("name", "error"), [("missing.ada", "not_found"), ("restricted.ada", "restricted_page")]
)
async def test_profile_that_is_not_visible_is_an_item_with_an_error(look, name, error):
    (item,) = await look(name)

    assert (item["username"], item["error"], "followersCount" in item) == (name, error, False)


async def test_items_are_paginated(start, apify):
    run = await start(run_input={"directUrls": ["https://www.instagram.com/ada.lovely"]}, actor=POSTS)
    dataset = apify.dataset(run.default_dataset_id)

    page = await dataset.list_items(offset=10, limit=5)
    backwards = await dataset.list_items(desc=True, limit=1)

    assert (page.total, page.offset, page.count, page.limit, page.desc) == (12, 10, 2, 5, False)
    assert (backwards.desc, backwards.items[0]) == (True, page.items[-1])


@pytest.mark.parametrize(
    ("options", "count"),
    [({"max_items": 1}, 1), ({"max_total_charge_usd": 0.0052}, 2), ({"max_total_charge_usd": 0.001}, 0)],
    ids=str,
)
async def test_items_are_limited_by_the_maximum_charge(look, options, count):
    assert len(await look("a.a", "b.b", "c.c", **options)) == count


async def test_waiting_for_the_end_lasts_at_most_the_requested_time(simulators, start):
    await simulators.latency(LONG)
    run = await start("ada.lovely", wait=0)

    answer = await simulators.http.get(f"/apify/v2/actor-runs/{run.id}?waitForFinish=1&token=x")

    assert answer.json()["data"]["status"] == "RUNNING"
    assert 0.9 <= answer.elapsed.total_seconds() < 10


async def test_aborted_run_does_not_end_again(simulators, start, apify):
    await simulators.latency({**LONG, "ms": 500})
    aborted = await start("ada.lovely", wait=0)
    await apify.run(aborted.id).abort()

    later = await start("ada.lovely")  # ends after the time at which the aborted run would have ended

    assert (later.status, (await apify.run(aborted.id).get()).status) == ("SUCCEEDED", "ABORTED")


async def test_an_aborted_run_ends_and_is_counted(simulators, start, apify):
    await simulators.latency(LONG)
    run = await start("ada.lovely", wait=0)

    aborting = await apify.run(run.id).abort()
    ended = await apify.run(run.id).wait_for_finish(wait_duration=timedelta(seconds=10))

    assert (aborting.status, ended.status) == ("ABORTING", "ABORTED")
    assert (await apify.dataset(run.default_dataset_id).list_items()).items == []
    state = await simulators.state()
    assert state["apify"] == {"started": 1, "running": 0, "running_max": 1, "aborted": 1}


async def test_run_beyond_its_time_limit_is_timed_out(simulators, start):
    await simulators.latency(LONG)

    run = await start("ada.lovely", run_timeout=timedelta(seconds=1))

    assert run.status == "TIMED-OUT"


async def test_run_fails_on_request(simulators, look, start):
    await simulators.settings(apify_run_ends="FAILED")

    assert (await start("ada.lovely")).status == "FAILED"
    assert await look("ada.lovely") == []


async def test_runs_beyond_the_plans_concurrency_are_rejected(simulators, start, apify):
    await simulators.settings(apify_runs_max=2)
    await simulators.latency(LONG)
    runs = [await start("ada.lovely", wait=0) for _ in range(2)]

    with pytest.raises(ApifyApiError) as refusal:
        await start("ada.lovely", wait=0)
    for run in runs:
        await apify.run(run.id).abort()
    await until(lambda: has_ended(simulators))

    assert (refusal.value.status_code, refusal.value.type) == (402, "concurrent-runs-limit-exceeded")
    await simulators.latency({**LONG, "ms": 0})
    assert (await start("ada.lovely")).status == "SUCCEEDED"


async def has_ended(simulators):
    return (await simulators.state())["apify"]["running"] == 0


async def test_runs_are_listed_by_actor_and_start_time_with_their_user_agent(start, apify):
    first, second = [await start("ada.lovely") for _ in range(2)]
    await start(actor=POSTS, run_input={"directUrls": ["https://www.instagram.com/ada.lovely"]})

    listed = await apify.actor(PROFILES).runs().list(desc=True, started_after=first.started_at)
    page = await apify.actor(PROFILES).runs().list(limit=1)
    later = await apify.actor(PROFILES).runs().list(started_after=datetime.now(UTC) + timedelta(minutes=1))

    assert [run.id for run in listed.items] == [second.id, first.id]
    assert "ApifyClient" in listed.items[0].meta.user_agent
    assert ([run.id for run in page.items], page.total, later.items) == ([first.id], 2, [])


@pytest.mark.parametrize(
    ("status", "code"), [(402, "actor-memory-limit-exceeded"), (429, "rate-limit-exceeded")]
)
async def test_temporary_error_has_apifys_format(simulators, start, status, code):
    await simulators.fault("/apify/v2/actors", status=status, code=code)

    with pytest.raises(ApifyApiError) as refusal:
        await start("ada.lovely")

    assert (refusal.value.status_code, refusal.value.type) == (status, code)
    assert (await start("ada.lovely")).status == "SUCCEEDED"


async def test_large_compressed_input_is_accepted(look):
    names = [f"person.number.{number}" for number in range(200)]

    items = await look(*names)

    assert [item["username"] for item in items] == names


async def test_unknown_ids_are_not_found(apify, start):
    assert await apify.run("unknown").get() is None
    with pytest.raises(NotFoundError):
        await start("ada.lovely", actor="apify/unknown")
    with pytest.raises(NotFoundError):
        await apify.dataset("unknown").list_items()


async def test_call_without_a_token_is_rejected(simulators):
    answer = await simulators.http.get("/apify/v2/actor-runs/x")

    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "token-not-provided")
