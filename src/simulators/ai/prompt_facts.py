"""Facts in a prompt: lines of ``name: value``, tags, ids, and the overlap of its two parts."""

import math
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from simulators.ai.embeddings import COMMON, words_of

_LINE = re.compile(r'^[ \t\-*"]{0,20}([A-Za-z][\w ]{1,40}?)"? {0,5}[:=] {0,5}(.+)$', re.MULTILINE)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_TAG = re.compile(r"#(\w{2,40})")
_HANDLE = re.compile(r"@([A-Za-z0-9._]{2,30})")
_ID = re.compile(
    r"""\b(?:post_)?id["']? ?[:=] ?["']?([\w-]{1,64})"""  # id: 17, "id": "17", post_id=17
    r"""|\[([A-Za-z]{0,8}\d[\w-]{0,40})\]"""  # [p17]
)
FILLERS = frozenset({"count", "total", "number", "of", "the"})
WORD_LENGTH_MIN = 4
VALUE_LENGTH_MAX = 1_000


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    lines: dict[str, str]  # by plain name; the first line of a name counts
    tags: tuple[str, ...]  # most used first
    ids: tuple[str, ...]  # in order of appearance
    subject: str  # the person that the prompt describes
    agreement: float  # 0..1: grows with the share of the question's words that occur in the stable part

    def number(self, name: str) -> float | None:
        """Returns the number of the line whose name contains all words of this name, or the reverse."""
        wanted = set(plain(name).split("_"))
        for key, value in self.lines.items():
            words = set(key.split("_"))
            if words <= wanted or wanted <= words:
                found = _NUMBER.search(value)
                if found:
                    return float(found[0].replace(",", ""))
        return None


def plain(name: str) -> str:
    """Normalizes a name: ``followersCount``, ``Followers`` and ``followers_count`` become the same."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
    return "_".join(word for word in words if word not in FILLERS) or "_".join(words)


def read_facts(cached_prefix: Iterable[str], user_message: str) -> PromptFacts:
    lines: dict[str, str] = {}
    for name, value in _LINE.findall(user_message):
        lines.setdefault(plain(name), value.strip("\"', ")[:VALUE_LENGTH_MAX])
    handles = _HANDLE.findall(user_message)
    named = lines.get("username") or lines.get("full_name") or lines.get("name")
    return PromptFacts(
        lines=lines,
        tags=tuple(tag for tag, _ in Counter(map(str.lower, _TAG.findall(user_message))).most_common(8)),
        ids=tuple(dict.fromkeys(first or second for first, second in _ID.findall(user_message))),
        subject=named or (handles[0] if handles else "This one"),
        agreement=_agreement(" ".join(cached_prefix), user_message),
    )


def _agreement(cached_prefix: str, user_message: str) -> float:
    asked, known = _keywords(user_message), _keywords(cached_prefix)
    if not asked or not known:
        return 0.0
    shared = len(asked & known) / len(asked)
    return 1 - math.exp(-4 * shared)  # a third in common is much; 1 is never reached


def _keywords(text: str) -> set[str]:
    return {word for word in words_of(text) if len(word) >= WORD_LENGTH_MIN and word not in COMMON}
