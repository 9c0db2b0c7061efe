"""Strangers' text, made harmless to read, to compare and to quote."""

import re
import unicodedata

LENGTH_MAX = 3_000  # Instagram allows 2,200; what is longer is not looked at
LINE_BREAK = " / "  # a text stands on one line, so that it cannot begin one of ours
CUT_MARK = " [cut]"

# Letters that leave no trace on a screen and can carry a message to a model: variation selectors, the
# grapheme joiner, Mongolian selectors and Hangul fillers. The other invisible ones are not printable.
_TRACELESS = re.compile("[\u034f\u115f\u1160\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_HALF_ESCAPE = re.compile("&[a-z]{0,3}$")
_WORD = re.compile(r"\w+")


def plain(text: str) -> str:
    """On one line, without what cannot be seen: control and format characters, direction overrides, tags,
    half characters. Fancy letters become the ordinary ones that they look like (NFKC).

    Joiners are invisible, too: emoji families fall apart into their members. That harms no reader.
    """
    text = text[:LENGTH_MAX]
    if text.isascii() and text.isprintable():
        return " ".join(text.split())  # what follows would come to the same, ten times slower
    lines = unicodedata.normalize("NFKC", _TRACELESS.sub("", text)).splitlines()
    return LINE_BREAK.join(filter(None, (" ".join(_visible(line).split()) for line in lines)))


def escaped(text: str) -> str:
    """With no angle bracket left, so that it can neither open nor close a mark."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(text: str, bytes_max: int) -> str:
    """At the end of a word if there is one in the second half, and marked. The mark comes on top. Made for
    escaped text: no half of an escape is left.
    """
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    kept = _HALF_ESCAPE.sub("", data[:bytes_max].decode(errors="ignore"))
    whole_words = kept.rpartition(" ")[0]
    return (whole_words if len(whole_words) * 2 >= len(kept) else kept) + CUT_MARK


def comparable(text: str) -> str:
    """The same for every spelling: case, width, composition, an English plural."""
    folded = unicodedata.normalize("NFKC", plain(text).casefold())
    return " ".join(_singular(word) for word in _WORD.findall(folded))


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(letter for letter in line if letter.isprintable() or letter.isspace())


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")  # noqa: PLR2004  gas is one
    return word[:-1] if is_plural else word
