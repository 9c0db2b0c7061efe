"""Sanitized scraped text: safe to read, compare and quote."""

import re
import unicodedata

LENGTH_MAX = 3_000  # Instagram allows 2,200; the rest is ignored
LINE_BREAK = " / "  # scraped text stays on one line, so that it cannot imitate a line of our prompt
CUT_MARK = " [cut]"

# Printable letters that are invisible on a screen and can carry a message to a model: variation selectors,
# the grapheme joiner, Mongolian selectors and Hangul fillers. Other invisible characters are not printable.
_TRACELESS = re.compile("[\u034f\u115f\u1160\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_HALF_ESCAPE = re.compile("&[a-z]{0,3}$")
_WORD = re.compile(r"\w+")


def plain(text: str) -> str:
    """One line without invisible characters: control and format characters, direction overrides, tags, lone
    surrogates. Stylized letters become the ordinary letters that they resemble (NFKC).

    Joiners are removed too, so an emoji family becomes separate emoji, which is acceptable.
    """
    text = text[:LENGTH_MAX]
    if text.isascii() and text.isprintable():
        return " ".join(text.split())  # same result as below, ten times faster
    lines = unicodedata.normalize("NFKC", _TRACELESS.sub("", text)).splitlines()
    return LINE_BREAK.join(filter(None, (" ".join(_visible(line).split()) for line in lines)))


def escaped(text: str) -> str:
    """Without angle brackets, so that the text cannot open or close a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(text: str, bytes_max: int) -> str:
    """Cuts at the end of a word if there is one in the second half, and appends a mark that does not count
    towards ``bytes_max``. For escaped text: never leaves a partial escape.
    """
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    kept = _HALF_ESCAPE.sub("", data[:bytes_max].decode(errors="ignore"))
    whole_words = kept.rpartition(" ")[0]
    return (whole_words if len(whole_words) * 2 >= len(kept) else kept) + CUT_MARK


def comparable(text: str) -> str:
    """Equal for all spellings that differ in case, width, composition or an English plural."""
    folded = unicodedata.normalize("NFKC", plain(text).casefold())
    return " ".join(_singular(word) for word in _WORD.findall(folded))


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(letter for letter in line if letter.isprintable() or letter.isspace())


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")  # noqa: PLR2004  gas is one
    return word[:-1] if is_plural else word
