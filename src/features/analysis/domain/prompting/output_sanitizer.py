"""What a model was talked into saying, taken out of its answer.

Strangers' text can ask for a link, an address, a handle or a code, and a model may obey. None of them has a
place in an answer, whether it stands in the profile or not: what the customer wrote about the business and
the profile's own handle are all that may be repeated.
"""

import html
import re
from typing import Generic, Literal, TypeVar, cast

import msgspec

from features.analysis.domain.prompting.model_outputs import ModelOutput

FormT = TypeVar("FormT", bound=ModelOutput)
RemovalKind = Literal["markup", "link", "handle", "telephone", "code"]

MARK = "[…]"  # shorter than anything it replaces, so that an answer keeps its bounds
QUOTE_LENGTH_MAX = 200

_DOT = r"(?:[.．․]|(?<=[A-Za-z0-9])[。｡](?=[A-Za-z0-9]))"  # noqa: RUF001  lookalikes that browsers take for one
# Each alternative begins at the border of a word and repeats within bounds, so that a long answer takes a
# time in proportion to its length.
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
# Variation selectors that carry no emoji's look, and the grapheme joiner.
_TRACELESS = re.compile("[\u034f\ufe00-\ufe0e\U000e0100-\U000e01ef]")
# Emoji and some scripts need joiners; between ASCII letters they only hide a word.
_JOINER_IN_PLACE = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    field: str
    kind: RemovalKind
    text: str


class SanitizedOutput(msgspec.Struct, Generic[FormT], frozen=True, kw_only=True):
    answer: FormT
    removals: tuple[Removal, ...]


def allowed_words(prompt_prefix: str, username: str) -> frozenset[str]:
    """Links and handles that the customer wrote about the business, and the profile's own: many have a dot
    in their name, as an address has.
    """
    written = html.unescape(prompt_prefix)
    found = (_trimmed(match[0]) for match in _SUSPECT.finditer(written) if match.lastgroup != "markup")
    return frozenset(word.casefold() for word in (*found, username, f"@{username}"))


def clean_answer(answer: FormT, allowed: frozenset[str]) -> SanitizedOutput[FormT]:
    """The same answer, with a mark in place of what was removed. Invisible characters go without one."""
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
    while True:  # what stood right behind a removed word is seen the next time
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
    """Without the punctuation of the sentence around it; a mark of Markdown ends with its own."""
    return word if word.startswith(("[", "!", "<")) else word.rstrip(_SENTENCE_END)
