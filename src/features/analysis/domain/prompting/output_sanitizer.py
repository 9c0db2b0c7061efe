"""Removal of injected content from model outputs.

Scraped text can ask for a link, an address, a handle or a code, and a model may obey. Outputs contain none
of these, even if the profile does. The only exceptions are what the customer wrote about the business and
the profile's own handle.
"""

import html
import re
from typing import Generic, Literal, TypeVar, cast

import msgspec

from features.analysis.domain.prompting.model_outputs import ModelOutput

FormT = TypeVar("FormT", bound=ModelOutput)
RemovalKind = Literal["markup", "link", "handle", "telephone", "code"]

MARK = "[…]"  # shorter than any match, so that a sanitized output keeps its length bounds
QUOTE_LENGTH_MAX = 200

_DOT = r"(?:[.．․]|(?<=[A-Za-z0-9])[。｡](?=[A-Za-z0-9]))"  # noqa: RUF001  lookalikes that browsers take for one
# Each alternative begins at a word boundary and has bounded repetition, so that the time is linear in the
# length of the output.
_SUSPECT = re.compile(
    rf"""
    (?P<markup> !?\[[^\[\]]*\]\([^()]*\)            # Markdown's links and pictures
        | <!--.*?(?:-->|\Z) | </?[A-Za-z!?][^<>]*> )
    | (?P<link> (?<!\w) [A-Za-z][\w+.-]{{0,20}}:// \S+
        | \b(?:mailto|tel|sms|data|javascript|whatsapp): \S+
        | (?<![\w.+-]) [\w.+-]+ [@＠﹫] [\w-]+ (?:{_DOT}[\w-]+)+
        | (?<![\w-]) (?:[\w-]+{_DOT}){{1,10}} [^\W\d_]{{2}}[\w-]* (?::\d+)? (?:[/?\#]\S*)?
        | (?<![\w.]) \d{{1,3}} (?:{_DOT}\d{{1,3}}){{3}} (?::\d+)? (?:/\S*)?
        | (?<![\w-]) [\w-]+ \s? [\[({{] \s? (?:{_DOT}|dot|DOT|Dot) \s? [\])}}] \s? [\w-]+ )
    | (?P<handle> [@＠﹫] \w[\w.]*\w )
    | (?P<telephone> \+ (?:[\s().-]{{0,2}}\d){{9,15}} )
    | (?P<code> \b[0-9A-Fa-f]{{8}} (?:-[0-9A-Fa-f]{{4}}){{3}} -[0-9A-Fa-f]{{12}}\b
        | (?<![A-Za-z0-9+/=_]) (?=[A-Za-z+/=_]*\d) (?=[\d+/=_]*[A-Za-z]) [A-Za-z0-9+/=_]{{20,}} )
    """,  # noqa: RUF001
    re.VERBOSE | re.DOTALL,
)
_SENTENCE_END = ".,;:!?)]}'\"»”"
# Variation selectors that do not change an emoji, and the grapheme joiner.
_TRACELESS = re.compile("[\u034f\ufe00-\ufe0e\U000e0100-\U000e01ef]")
# Emoji and some scripts need joiners; between ASCII letters joiners only hide a word.
_JOINER_IN_PLACE = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    field: str
    kind: RemovalKind
    text: str


class SanitizedOutput(msgspec.Struct, Generic[FormT], frozen=True, kw_only=True):
    answer: FormT
    removals: tuple[Removal, ...]


def allowed_words(prompt_prefix: str, username: str) -> frozenset[str]:
    """Links and handles that the customer wrote about the business, and the profile's own handle, which can
    contain a dot and so match the pattern of an address.
    """
    written = html.unescape(prompt_prefix)
    found = (_trimmed(match[0]) for match in _SUSPECT.finditer(written) if match.lastgroup != "markup")
    return frozenset(word.casefold() for word in (*found, username, f"@{username}"))


def clean_answer(answer: FormT, allowed: frozenset[str]) -> SanitizedOutput[FormT]:
    """Returns the output with a mark for each removal. Invisible characters are removed without a mark."""
    removals: list[Removal] = []
    cleaned = cast("FormT", _cleaned(answer, "", allowed, removals))
    return SanitizedOutput(answer=cleaned, removals=tuple(removals))


def _cleaned(value: object, field: str, allowed: frozenset[str], removals: list[Removal]) -> object:
    match value:
        case str():
            return _clean_text(value, field, allowed, removals)
        case tuple():
            items = cast("tuple[object, ...]", value)
            return tuple(
                _cleaned(item, f"{field}[{number}]", allowed, removals) for number, item in enumerate(items)
            )
        case msgspec.Struct():
            prefix = f"{field}." if field else ""
            return msgspec.structs.replace(
                value,
                **{
                    name: _cleaned(getattr(value, name), prefix + name, allowed, removals)
                    for name in value.__struct_fields__
                },
            )
        case _:
            return value


def _clean_text(text: str, field: str, allowed: frozenset[str], removals: list[Removal]) -> str:
    def judged(match: re.Match[str]) -> str:
        word = _trimmed(match[0])
        if word.casefold() in allowed:
            return match[0]
        kind = cast("RemovalKind", match.lastgroup)
        removals.append(Removal(field=field, kind=kind, text=word[:QUOTE_LENGTH_MAX]))
        return MARK + match[0][len(word) :]

    text = _visible(text)
    while True:  # a removal can expose text directly after it, so repeat until stable
        removals_before = len(removals)
        text = _SUSPECT.sub(judged, text)
        if len(removals) == removals_before:
            return text


def _visible(text: str) -> str:
    joiners = {match.start() for match in _JOINER_IN_PLACE.finditer(text)}
    return _TRACELESS.sub(
        "", "".join(_seen(letter, is_needed=place in joiners) for place, letter in enumerate(text))
    )


def _seen(letter: str, *, is_needed: bool) -> str:
    if letter.isprintable() or letter in "\n\t" or is_needed:
        return letter
    return " " if letter.isspace() else ""


def _trimmed(word: str) -> str:
    """Without the punctuation of the surrounding sentence. Markdown links keep their closing bracket."""
    return word if word.startswith(("[", "!", "<")) else word.rstrip(_SENTENCE_END)
