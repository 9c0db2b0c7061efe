"""Sanitized scraped text: visible, on one line, escaped and bounded."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text import CUT_MARK, LENGTH_MAX, comparable, cut, escaped, plain


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
def test_invisible_characters_are_removed_and_lines_joined(text, shown):
    assert plain(text) == shown


def test_no_unicode_letter_becomes_invisible_or_a_line_end():
    texts = ("".join(map(chr, range(start, start + 2_048))) for start in range(0, sys.maxunicode, 2_048))

    shown = [plain(text) for text in texts]
    assert all(text.isprintable() for text in shown)
    assert len(shown[0]) > 1_500


def test_text_beyond_the_length_limit_is_ignored():
    assert len(plain("x" * (LENGTH_MAX + 1))) == LENGTH_MAX


@given(st.text())
def test_escaped_text_has_no_angle_bracket_and_can_be_unescaped(text):
    quoted = escaped(text)

    assert not {"<", ">"} & set(quoted)
    assert quoted.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


@pytest.mark.parametrize(
    ("text", "bytes_max", "shown"),
    [
        ("short", 5, "short"),
        ("some words here", 12, "some words" + CUT_MARK),
        ("a " + "x" * 20, 12, "a " + "x" * 10 + CUT_MARK),  # the only word boundary loses nearly everything
        ("ééé", 5, "éé" + CUT_MARK),
        ("R &amp; D", 6, "R" + CUT_MARK),
        ("RRR&lt;", 6, "RRR" + CUT_MARK),
    ],
)
def test_text_is_cut_at_a_word_and_marked(text, bytes_max, shown):
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
def test_word_that_only_resembles_a_plural_is_unchanged(word):
    assert comparable(word) == word
