"""Strangers' text: visible, on one line, unable to open a mark, and as long as we say."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.analysis.domain.profile.text import CUT_MARK, LENGTH_MAX, comparable, cut, escaped, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  a \t b  ", "a b"),
        ("one\r\n\r\n two\u2028three\x85four", "one / two / three / four"),
        ("a\u200bb\u202ec\u2066d\ufeffe\x00f\xadg", "abcdefg"),
        ("tag" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey") + "s", "tags"),
        ("a\ufe0fb\U000e0101c\u034fd\u3164e", "abcde"),
        ("\U0001d401\U0001d428\U0001d425\U0001d41d \uff1cb\uff1e \ufb01n", "Bold <b> fin"),
        ("half \ud83d character", "half character"),
        ("", ""),
    ],
    ids=ascii,
)
def test_what_cannot_be_seen_is_gone_and_the_rest_is_on_one_line(text, shown):
    assert plain(text) == shown


def test_no_letter_of_unicode_becomes_something_invisible_or_a_line_end():
    texts = ("".join(map(chr, range(start, start + 2_048))) for start in range(0, sys.maxunicode, 2_048))

    shown = [plain(text) for text in texts]
    assert all(text.isprintable() for text in shown)
    assert len(shown[0]) > 1_500


def test_more_than_anybody_may_write_is_not_looked_at():
    assert len(plain("x" * (LENGTH_MAX + 1))) == LENGTH_MAX


@given(st.text())
def test_an_escaped_text_has_no_angle_bracket_and_means_the_same(text):
    quoted = escaped(text)

    assert not {"<", ">"} & set(quoted)
    assert quoted.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


@pytest.mark.parametrize(
    ("text", "bytes_max", "shown"),
    [
        ("short", 5, "short"),
        ("some words here", 12, "some words" + CUT_MARK),
        ("a " + "x" * 20, 12, "a " + "x" * 10 + CUT_MARK),  # the only boundary would lose nearly all
        ("ééé", 5, "éé" + CUT_MARK),
        ("R &amp; D", 6, "R" + CUT_MARK),
        ("RRR&lt;", 6, "RRR" + CUT_MARK),
    ],
)
def test_a_text_is_cut_at_a_word_and_says_so(text, bytes_max, shown):
    assert cut(text, bytes_max) == shown


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COFFEE", "coffee"),
        ("Roasters", "roaster"),
        ("Café", "cafe\u0301"),
        ("STRASSE", "straße"),
        ("home-made, bread!", "Home made BREAD"),
    ],
)
def test_spellings_of_the_same_words_compare_equal(one, other):
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize("word", ["gas", "bus", "glass", "tea"])
def test_what_only_looks_like_a_plural_stays(word):
    assert comparable(word) == word
