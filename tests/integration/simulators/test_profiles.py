"""Simulated profiles."""

from datetime import UTC, datetime

import msgspec

from simulators.instagram.instagram_items import profile_item
from simulators.instagram.profiles import kind_of, posted_at, profile_of

NOW = datetime(2026, 3, 4, 15, tzinfo=UTC)
NAMES = [f"person.{number}" for number in range(2_000)]


def test_few_profiles_are_private_and_fewer_missing():
    kinds = [kind_of(name) for name in NAMES]

    assert 0.025 < kinds.count("private") / len(NAMES) < 0.055
    assert 0.01 < kinds.count("missing") / len(NAMES) < 0.03


def test_most_profiles_have_few_followers_and_some_have_many():
    followers = sorted(profile_of(name).followers for name in NAMES)

    assert followers[0] >= 200
    assert followers[-1] <= 5_000_000
    assert followers[len(NAMES) // 2] < 50_000
    assert followers[-20] > 300_000


def test_larger_audience_has_a_lower_engagement_rate():
    people = [profile_of(name) for name in NAMES[:150] if kind_of(name) == "ordinary"]
    rates = {profile.followers: average_likes(profile) / profile.followers for profile in people}
    ordered = [rates[followers] for followers in sorted(rates)]

    assert sum(ordered[:30]) > 2 * sum(ordered[-30:])
    assert all(0 < rate < 0.4 for rate in ordered)


def average_likes(profile):
    return sum(post.likes for post in profile.posts(12)) / 12


def test_at_least_fifty_posts_newest_first_and_stable_for_a_day():
    posts = profile_of("ada.lovely").posts()
    times = [posted_at(post, NOW) for post in posts]

    assert len(posts) >= 60
    assert times == sorted(times, reverse=True)
    assert times == [posted_at(post, NOW.replace(hour=1)) for post in posts]
    assert times[0] < NOW
    assert {post.kind for post in posts} == {"Image", "Video", "Sidecar"}


def test_captions_contain_the_listed_tags_and_mentions():
    posts = profile_of("ada.lovely").posts()

    assert any(post.mentions for post in posts)
    for post in posts:
        assert all(f"#{tag}" in post.caption for tag in post.tags)
        assert all(f"@{name}" in post.caption for name in post.mentions)


def test_each_kind_has_its_properties():
    huge, empty, sparse = profile_of("huge_one"), profile_of("empty"), profile_item("sparse.one", 12, NOW)

    assert huge.followers >= 20_000_000
    assert {len(post.caption) for post in huge.posts()} == {2_200}
    assert (empty.posts(), empty.posts_count, empty.biography) == ((), 0, "")
    assert "profilePicUrl" not in sparse
    assert "caption" not in sparse["latestPosts"][0]


def test_other_scripts_and_hostile_texts_survive_serialization():
    for name in ("nonlatin.one", "hostile.one"):
        item = profile_item(name, 50, NOW)

        assert msgspec.json.decode(msgspec.json.encode(item)) == item
    assert any("Ignore all previous" in post.caption for post in profile_of("hostile.one").posts())
    assert not profile_of("nonlatin.one").biography.isascii()


def test_fewer_posts_are_the_newest_ones():
    profile = profile_of("ada.lovely")

    assert profile.posts(12) == profile.posts(50)[:12]
