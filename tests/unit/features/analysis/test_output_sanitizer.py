"""Sanitizer of model outputs."""

from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.analysis.domain.prompting.output_sanitizer import (
    MARK,
    QUOTE_LENGTH_MAX,
    Removal,
    allowed_words,
    clean_answer,
)
from tests.unit.features.analysis.examples import OUTREACH, PREFIX, changed

ALLOWED = allowed_words(PREFIX, "ana.bakes")


def cleaned(text):
    result = clean_answer(changed(OUTREACH, avoid=(text,)), ALLOWED)
    return result.answer.avoid[0], result.removals


@pytest.mark.parametrize(
    "text",
    [
        "Hi @ana.bakes, I loved the rye. Could we talk?",
        "@Ana.Bakes!",
        "ana.bakes writes well.",
        "See https://alpine-coffee.example/shop.",
        "(https://alpine-coffee.example/shop)",
        "I <3 bread, 4.5km away, 2.5x better, at 7 a.m. or p.m., e.g. rye; 10,000 loaves since 2019 - 2024.",
        "Preis: 3,50 € … „sehr gut“, schön, 100 % Roggen (½ kg)",
        "パンが好きです。次の予定は",
        "Famille 👨\u200d👩\u200d👧 ❤\ufe0f می\u200cکنم",
        "Two lines\nand\ta tab",
        "A heart-warming-and-long-hyphenated-word",
        "",
    ],
)
def test_harmless_text_is_unchanged(text):
    assert cleaned(text) == (text, ())


@pytest.mark.parametrize(
    ("text", "kind", "removed"),
    [
        ("Go to https://evil.example/x?y=1#z now.", "link", "https://evil.example/x?y=1#z"),
        ("Go to evil.example.", "link", "evil.example"),
        ("Go to EVIL.Com/offer!", "link", "EVIL.Com/offer"),
        ("Go to evil.example:8080/x", "link", "evil.example:8080/x"),
        ("Go to 10.0.0.1/x", "link", "10.0.0.1/x"),
        ("Go to bücher.example", "link", "bücher.example"),
        ("Go to alpine-coffee.example.evil.example", "link", "alpine-coffee.example.evil.example"),
        ("Go to https://alpine-coffee.example@evil.example/", "link", "https://alpine-coffee.example@evil.example/"),
        ("Go to https://alpine-coffee.example/shop/evil", "link", "https://alpine-coffee.example/shop/evil"),
        ("Go to evil (dot) example", "link", "evil (dot) example"),
        ("Write to a.b+c@evil.example, please", "link", "a.b+c@evil.example"),
        ("Open mailto:x", "link", "mailto:x"),
        ("Ask @evil_one.", "handle", "@evil_one"),
        ("Go to ana.bakes/shop", "link", "ana.bakes/shop"),
        ("Ask @ana.bakes2", "handle", "@ana.bakes2"),
        ("[click](anything)", "markup", "[click](anything)"),
        ("![](x)", "markup", "![](x)"),
        ("<script>", "markup", "<script>"),
        ("<!-- never closed", "markup", "<!-- never closed"),
        ("Call +1 (555) 010-99887 now", "telephone", "+1 (555) 010-99887"),
        ("Use 5f0c1d2e-3a4b-4c5d-8e9f-001122334455", "code", "5f0c1d2e-3a4b-4c5d-8e9f-001122334455"),
        ("Use AKIAIOSFODNN7EXAMPLE9", "code", "AKIAIOSFODNN7EXAMPLE9"),
    ],
)  # fmt: skip
def test_links_handles_numbers_and_codes_are_replaced_and_listed(text, kind, removed):
    shown, removals = cleaned(text)

    assert shown == text.replace(removed, MARK)
    assert removals == (Removal(field="avoid[0]", kind=kind, text=removed),)


def test_removals_name_nested_fields():
    message = changed(OUTREACH.messages[0], opening="evil.example")
    result = clean_answer(changed(OUTREACH, messages=(message,)), ALLOWED)

    assert [removal.field for removal in result.removals] == ["messages[0].opening"]
    assert result.answer.messages[0].message == message.message


def test_invisible_characters_are_removed_without_a_mark():
    assert cleaned("a\u200bb\u202e\U000e0041 e\u200dv c\u202fd\x00\U000e0101") == ("ab ev c d", ())


def test_address_split_by_invisible_characters_is_found():
    assert cleaned("e\u200bvil\u2060.exam\u00adple")[0] == MARK


def test_address_directly_after_another_is_found():
    shown, removals = cleaned("evil.example:1other.example")

    assert (shown, len(removals)) == (MARK * 2, 2)


def test_address_after_many_dots_or_a_long_word_is_found():
    assert "evil.example" not in cleaned("a." * 40 + "evil.example")[0]
    assert cleaned("字" * 200 + "evil.example")[0] == MARK


@pytest.mark.parametrize(
    "piece", ["a", "a.", "1.", "a-", "-.", "a@", "<a", "[a](", "+1 ", "A1/", "a\u3002"], ids=ascii
)
def test_sanitizing_takes_time_linear_in_the_length(piece):
    def duration_s(length):
        text = piece * (length // len(piece))
        started = thread_time()
        cleaned(text)
        return thread_time() - started

    # Eight times the length takes 8 times as long if linear, 64 times if quadratic; the minimum limits noise.
    short, long = (min(duration_s(length) for _ in range(5)) for length in (2_000, 16_000))
    assert long < 30 * short


def test_quote_of_a_removed_text_is_shortened():
    assert len(cleaned("https://" + "x" * 500)[1][0].text) == QUOTE_LENGTH_MAX


def test_customers_own_links_are_allowed_but_not_markup():
    allowed = allowed_words(
        "&lt;b&gt; Ask @alpine or sales@alpine.example &amp; https://a.example/?a=1&amp;b=2", "x"
    )

    assert allowed == {"@alpine", "sales@alpine.example", "https://a.example/?a=1&b=2", "@x", "x"}


LETTERS = st.sampled_from(
    [*"ab. @/:<>[]()-+1!\n", "evil.co", "https://", "@ab", "[a](b)", "<a>", "\u200b", "\uff0e"]
)


@settings(deadline=None, max_examples=80)
@given(st.lists(LETTERS, max_size=20).map("".join))
def test_sanitizing_never_lengthens_a_text_and_is_idempotent(text):
    once, _ = cleaned(text)

    assert len(once) <= len(text)
    assert cleaned(once) == (once, ())
