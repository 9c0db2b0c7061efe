import pytest

PROFILE = "https://www.instagram.com/api/v1/users/web_profile_info/?username="


@pytest.fixture
def fetch(simulators):
    async def fetch(url, **options):
        return await simulators.http.get("/scraperapi/", params={"api_key": "key", "url": url, **options})

    return fetch


async def test_profile_has_the_format_of_instagrams_web_api(fetch):
    answer = await fetch(PROFILE + "ada.lovely")

    user = answer.json()["data"]["user"]
    media = user["edge_owner_to_timeline_media"]
    node = media["edges"][0]["node"]
    assert (user["username"], user["is_private"], len(media["edges"])) == ("ada.lovely", False, 12)
    assert media["count"] >= 60
    assert node["edge_media_to_caption"]["edges"][0]["node"]["text"]
    assert node["__typename"] in {"GraphImage", "GraphVideo", "GraphSidecar"}


async def test_both_scrapers_return_the_same_profile(fetch, apify):
    run = await apify.actor("apify/instagram-profile-scraper").start(
        run_input={"usernames": ["ada.lovely"]}, wait_for_finish=10
    )
    (item,) = (await apify.dataset(run.default_dataset_id).list_items()).items

    user = (await fetch(PROFILE + "ada.lovely")).json()["data"]["user"]

    assert (user["id"], user["edge_followed_by"]["count"]) == (item["id"], item["followersCount"])
    shown = user["edge_owner_to_timeline_media"]["edges"]
    assert [edge["node"]["id"] for edge in shown] == [post["id"] for post in item["latestPosts"]]


async def test_private_missing_and_restricted_profiles(fetch):
    private, missing, restricted = [
        await fetch(PROFILE + name) for name in ("private.a", "missing", "restricted")
    ]

    user = private.json()["data"]["user"]
    assert (user["is_private"], user["edge_owner_to_timeline_media"]["edges"]) == (True, [])
    assert missing.status_code == 404
    assert (restricted.status_code, restricted.json()["data"]["user"]) == (200, None)


async def test_any_other_address_is_always_the_same_article(fetch):
    first, second = [await fetch("https://example.com/blog/strength-after-forty") for _ in range(2)]
    other = await fetch("https://example.com/blog/été-<script>")

    assert first.text == second.text != other.text
    assert "<title>Strength after forty</title>" in first.text
    assert first.headers["content-type"].startswith("text/html")
    assert 8 <= first.text.count("<p>") <= 30
    assert "<script>" not in other.text


@pytest.mark.parametrize(
    ("options", "credits"),
    [({}, "1"), ({"render": "true"}, "10"), ({"premium": "true"}, "10"), ({"ultra_premium": "true"}, "30")],
    ids=str,
)
async def test_the_price_is_in_a_header(fetch, options, credits):  # noqa: A002
    assert (await fetch("https://example.com", **options)).headers["sa-credit-cost"] == credits


async def test_request_without_a_key_or_an_address_is_rejected(fetch):
    refusals = [
        await fetch("https://example.com", api_key=""),
        await fetch("ftp://example.com"),
        await fetch(""),
    ]

    assert [answer.status_code for answer in refusals] == [401, 400, 400]
