"""Parsing of untrusted profile data."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from features.analysis.domain.profile.profile import Profile
from infrastructure.scraping.apify_mapping import read_posts, read_profile
from infrastructure.scraping.errors import ScrapeError
from infrastructure.scraping.field_parsing import (
    address,
    count,
    flag,
    instant,
    names,
    required_count,
    text,
    usernames,
)
from infrastructure.scraping.web_profile_mapping import read_web_profile
from tests.integration.scraping.apify_server import WIRE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUGUST = datetime(2025, 8, 12, 16, 19, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0),
        (12, 12),
        (12.0, 12),
        ("12", 12),
        (" 1,234 ", 1234),
        ("1.2K", 1200),
        ("3m", 3_000_000),
        (-1, None),
        ("-1", None),
        (True, None),
        (None, None),
        ("", None),
        ("many", None),
        ([], None),
        (float("nan"), None),
        (float("inf"), None),
        (10**30, None),
        ("9" * 400, None),
    ],
)
def test_counts(value, number):
    assert count(value) == number


@pytest.mark.parametrize(("value", "number"), [(12, 12), ("1.2K", 1200), (None, 0), (-1, 0)])
def test_absent_count_is_zero(value, number):
    assert required_count(value) == number


@pytest.mark.parametrize("value", ["many", [], {}, True, 10**30])
def test_invalid_follower_count_raises_scrape_error(value):
    user = {"username": "ada", "edge_followed_by": {"count": value}}

    with pytest.raises(ScrapeError, match="not a count"):
        read_profile([{"username": "ada", "followersCount": value}], "ada", now=NOW)
    with pytest.raises(ScrapeError, match="not a count"):
        read_web_profile({"data": {"user": user}}, "ada", now=NOW)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("2025-08-12T16:19:28.000Z", AUGUST),
        ("2025-08-12T18:19:28+02:00", AUGUST),
        ("2025-08-12 16:19:28", AUGUST),
        (1755015568, AUGUST),
        (1755015568000, AUGUST),
        ("1755015568", AUGUST),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (0, None),
        (-1, None),
        ("2009-01-01T00:00:00Z", None),
        ("2031-01-01T00:00:00Z", None),
        (10**40, None),
        (float("nan"), None),
        ("nan", None),
        ("0001-01-01T00:00:00+23:59", None),
    ],
)
def test_instants(value, at):
    assert instant(value, now=NOW) == at


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        ("a\0b", "ab"),
        ("a\ud800b", "ab"),
        ("\ud83d\ude00", "😀"),
        ("ความ 名前 🪸", "ความ 名前 🪸"),
        (7, "7"),
        (True, ""),
        (None, ""),
        ({}, ""),
        ("x" * 9_000, "x" * 5_000),
    ],
    ids=ascii,
)
def test_texts(value, whole):
    assert text(value) == whole
    assert msgspec.json.decode(msgspec.json.encode(text(value))) == whole


def test_only_http_urls_are_accepted():
    assert address("https://a.example/") == "https://a.example/"
    assert [address(value) for value in ("javascript:alert(1)", "//a", 7, "https://" + "a" * 3_000)] == [
        ""
    ] * 4


def test_names_are_unique_and_limited():
    assert names(["a", "b", "a", "", None, 3]) == ("a", "b", "3")
    assert len(names(str(number) for number in range(1_000))) == 100
    assert usernames(["NASA", "nasa", "no name", None]) == ("nasa",)
    assert [flag(value) for value in (True, "true", 1, "yes", None)] == [True, True, False, False, False]


NASTY = [
    *(None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", "x", "\0", "\ud800", "9" * 500),
    *(
        [],
        [None],
        [[]],
        ["\udfff"],
        [{"url": 1}],
        [{"username": []}],
        [{"id": {}}],
        {},
        {"count": []},
        {"edges": 1},
    ),
    {"edges": [None, {"node": None}, {"node": {"id": []}}, {"node": {"username": 5, "text": []}}]},
]


def read_or_none(read):
    try:
        return read()
    except ScrapeError:
        return None


@pytest.mark.parametrize("field", sorted(WIRE["profile"]["item"]))
@pytest.mark.parametrize("part", [False, True])
def test_any_field_of_an_item_is_parsed_or_raises_scrape_error(field, part):
    for value in NASTY:
        item = {**WIRE["profile"]["item"], field: value}
        if part:
            item["latestPosts"] = [
                dict.fromkeys(post, value) for post in WIRE["profile"]["item"]["latestPosts"]
            ]
        items = [item, value]
        found = read_or_none(lambda items=items: read_profile(items, "nasa", now=NOW))
        if found is not None and found.profile is not None:
            assert msgspec.json.decode(msgspec.json.encode(found.profile), type=Profile) == found.profile


@pytest.mark.parametrize("field", sorted(WIRE["web_profile_info"]["body"]["data"]["user"]))
def test_any_field_of_a_web_profile_is_parsed_or_raises_scrape_error(field):
    for value in NASTY:
        user = {**WIRE["web_profile_info"]["body"]["data"]["user"], field: value}
        found = read_or_none(lambda user=user: read_web_profile({"data": {"user": user}}, "natgeo", now=NOW))
        if found is not None:
            assert msgspec.json.decode(msgspec.json.encode(found.profile), type=Profile) == found.profile


@pytest.mark.parametrize("value", NASTY, ids=ascii)
def test_invalid_document_raises_scrape_error(value):
    assert read_posts([value], now=NOW) == ()
    with pytest.raises(ScrapeError):
        read_web_profile(value, "nasa", now=NOW)
    with pytest.raises(ScrapeError):
        read_profile([value], "nasa", now=NOW)


def test_missing_fields_are_empty():
    profile = read_profile([{"username": "NASA"}], "nasa", now=NOW).profile

    assert json.loads(msgspec.json.encode(profile)) == {"username": "nasa"}


@pytest.mark.parametrize(
    ("category", "read"), [("None,Public figure", "Public figure"), ("None", ""), (None, ""), ("Art", "Art")]
)
def test_partial_category_is_kept(category, read):
    item = {"username": "nasa", "businessCategoryName": category}

    assert read_profile([item], "nasa", now=NOW).profile.category == read


def test_hidden_likes_are_none_and_posts_without_id_are_dropped():
    posts = read_posts(
        [{"id": "1", "likesCount": -1}, {"likesCount": 4}, {"shortCode": "x", "videoUrl": "v"}], now=NOW
    )

    assert [(post.id, post.likes_count, post.kind) for post in posts] == [
        ("1", None, "image"),
        ("x", None, "video"),
    ]
