"""Parsing of usernames."""

import pytest

from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile.profile import username_of


@pytest.mark.parametrize(
    ("text", "username"),
    [
        ("nasa", "nasa"),
        ("NASA", "nasa"),
        ("@nasa", "nasa"),
        ("  @Nasa\n", "nasa"),
        ("a", "a"),
        ("_", "_"),
        ("1", "1"),
        ("a.b_c.d", "a.b_c.d"),
        ("a" * 30, "a" * 30),
        ("_under.score_", "_under.score_"),
        ("http://instagram.com/nasa", "nasa"),
        ("https://www.instagram.com/nasa/", "nasa"),
        ("https://m.instagram.com/nasa", "nasa"),
        ("instagram.com/NASA", "nasa"),
        ("www.instagram.com/nasa/", "nasa"),
        ("HTTPS://WWW.INSTAGRAM.COM/nasa", "nasa"),
        ("https://instagr.am/nasa", "nasa"),
        ("https://www.instagram.com/@nasa", "nasa"),
        ("https://www.instagram.com/nasa/?hl=en&utm_source=qr", "nasa"),
        ("https://www.instagram.com/nasa?igsh=MzRlODBiNWFlZA==", "nasa"),
        ("https://www.instagram.com/nasa#top", "nasa"),
        ("https://www.instagram.com/nasa/reels/", "nasa"),
        ("https://www.instagram.com/nasa/tagged", "nasa"),
        ("instagram.community", "instagram.community"),
        ("reels_of_mine", "reels_of_mine"),
    ],
)
def test_name_handle_and_url_give_the_username(text, username):
    assert username_of(text) == username


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "@",
        "@@nasa",
        "na sa",
        "@ nasa",
        ".nasa",
        "nasa.",
        "na..sa",
        "na-sa",
        "nasa!",
        "a" * 31,
        "nasa/",
        "nasa\0",
        "nasa\nesa",
        "nasa%2Eesa",
        "https://www.instagram.com/",
        "https://www.instagram.com",
        "https://www.instagram.com//nasa",
        "https://www.instagram.com/p/DNQuxufAih9/",
        "https://www.instagram.com/nasa/p/DNQuxufAih9/",
        "https://www.instagram.com/reel/DNQuxufAih9/",
        "https://www.instagram.com/stories/nasa/123/",
        "https://www.instagram.com/explore/tags/space/",
        "https://www.instagram.com/nasa/followers/extra",
        "https://www.facebook.com/nasa",
        "https://instagram.com.evil.example/nasa",
        "https://evil.example/instagram.com/nasa",
        "https://user:pass@instagram.com/nasa",
        "ftp://instagram.com/nasa",
        "javascript:instagram.com/nasa",
    ],
)
def test_invalid_username_is_rejected(text):
    with pytest.raises(UsernameInvalid):
        username_of(text)


@pytest.mark.parametrize(
    "segment", ["explore", "reels", "reel", "accounts", "p", "tv", "stories", "direct", "Explore"]
)
@pytest.mark.parametrize("form", ["{}", "@{}", "https://www.instagram.com/{}/", "instagram.com/{}?hl=en"])
def test_reserved_paths_are_not_profiles(segment, form):
    with pytest.raises(UsernameInvalid):
        username_of(form.format(segment))


@pytest.mark.parametrize(
    "text",
    [
        "n\N{CYRILLIC SMALL LETTER A}sa",
        "\N{FULLWIDTH LATIN SMALL LETTER N}asa",
        "nas\N{COMBINING ACUTE ACCENT}a",
        "\N{KELVIN SIGN}im",  # its lower case is an ASCII k
        "na\N{ZERO WIDTH SPACE}sa",
        "\N{RIGHT-TO-LEFT OVERRIDE}nasa",
        "\N{ARABIC-INDIC DIGIT ONE}23",
        "名前",
        "in\N{LATIN SMALL LETTER LONG S}tagram.com/nasa",
        "https://www.instagram.com/nas\N{CYRILLIC SMALL LETTER A}/",
        "https://www.ins\N{CYRILLIC SMALL LETTER TE}agram.com/nasa",
    ],
    ids=ascii,
)
def test_lookalike_letters_are_rejected(text):
    with pytest.raises(UsernameInvalid):
        username_of(text)


def test_error_quotes_only_the_beginning_of_the_text():
    with pytest.raises(UsernameInvalid) as refusal:
        username_of("x" * 10_000)

    assert len(str(refusal.value)) < 300
