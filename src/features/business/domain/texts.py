"""Rules for a customer's texts: trimmed, bounded, and safe for the database, web pages and prompts.

The patterns express the same rules for the JSON Schema.
"""

import re
import unicodedata

from features.business.domain.errors import ProfileInvalid

_LINE = r"[^\x00-\x1f\x7f-\x9f]"
_PROSE = r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
LINE_PATTERN = rf"^{_LINE}*[^\s\x00-\x1f\x7f-\x9f]{_LINE}*$"
PROSE_PATTERN = rf"^{_PROSE}*[^\s\x00-\x1f\x7f-\x9f]{_PROSE}*$"
# No user name and no password, because the website is shown to people and to models.
WEBSITE_PATTERN = (
    r"^https?://[^\s\x00-\x20\x7f-\x9f/?#@:\\\[\]]+(:[0-9]{1,5})?([/?#][^\s\x00-\x20\x7f-\x9f]*)?$"
)
LANGUAGE_PATTERN = r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"

WEBSITE_LENGTH_MAX = 500
LANGUAGE_LENGTH_MAX = 35
ITEM_LENGTH_MAX = 100
ITEMS_MAX = 50

_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_PROSE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n?")


def line(field: str, text: str, length_max: int) -> str:
    if _NOT_IN_A_LINE.search(text):
        raise ProfileInvalid(field=field, reason="Leave out line breaks, tabs and other control characters.")
    return _of_length(field, text.strip(), length_max)


def prose(field: str, text: str, length_max: int) -> str:
    """Multi-line text. All line ends become line feeds."""
    text = _LINE_END.sub("\n", text)
    if _NOT_IN_PROSE.search(text):
        raise ProfileInvalid(
            field=field, reason="Leave out control characters; only line breaks and tabs are kept."
        )
    return _of_length(field, text.strip(), length_max)


def website(field: str, text: str) -> str:
    if _NOT_IN_A_LINE.search(text) or not re.fullmatch(WEBSITE_PATTERN, text):
        raise ProfileInvalid(
            field=field,
            reason="Send an address that begins with https:// or http:// and has no user or password in it.",
        )
    return _of_length(field, text, WEBSITE_LENGTH_MAX)


def language(field: str, text: str) -> str:
    if not re.fullmatch(LANGUAGE_PATTERN, text):
        raise ProfileInvalid(field=field, reason="Send a language tag such as en, de-CH or zh-Hant.")
    return _of_length(field, text, LANGUAGE_LENGTH_MAX)


def items(field: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Removes duplicates that differ only in case; each entry keeps its first position.

    The spelling that is kept does not depend on the order, so the prompt does not either.
    """
    spellings: dict[str, str] = {}
    for text in texts:
        item = line(field, text, ITEM_LENGTH_MAX)
        key = composed(composed(item).casefold())
        spellings[key] = min(spellings.get(key, item), item, key=lambda one: (composed(one), one))
    if len(spellings) > ITEMS_MAX:
        raise ProfileInvalid(field=field, reason=f"Send {ITEMS_MAX} entries at the most.")
    return tuple(spellings.values())


def composed(text: str) -> str:
    """Unicode NFC: equal bytes for texts that look the same."""
    return unicodedata.normalize("NFC", text)


def _of_length(field: str, text: str, length_max: int) -> str:
    if not 1 <= len(text) <= length_max:
        raise ProfileInvalid(
            field=field, reason=f"Send 1 to {length_max} characters that are not all spaces."
        )
    return text
