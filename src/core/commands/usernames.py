"""Whom to analyse, from a spreadsheet or a list as people keep them."""

import codecs
import csv
import io
from collections.abc import Iterator

import click
import msgspec

from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile import username_of
from features.analysis.domain.texts import plain

BYTES_MAX = 10_000_000
DELIMITERS = ",;\t"
COLUMN = "username"
# In the first row these are no person's name but a column's.
HEADERS = frozenset(
    {COLUMN, "usernames", "user name", "user_name", "user", "handle", "handles", "account", "profile"}
    | {"profile url", "profile_url", "url", "link", "name", "instagram username", "instagram handle"}
)
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class RejectedRow(msgspec.Struct, frozen=True):
    line: int
    text: str
    reason: str


class Usernames(msgspec.Struct, frozen=True, kw_only=True):
    """Each once, in the file's order."""

    accepted: list[str]
    rejected: list[RejectedRow]
    header: str | None  # the first row, when it was taken for names of columns


def read_usernames(content: bytes) -> Usernames:
    """From a CSV with a column ``username``, or the first column of anything. Raises ClickException for what
    is no text at all.
    """
    rows = list(_rows(_text_of(content)))
    column, header = _column_of(rows)
    accepted: dict[str, int] = {}
    rejected: list[RejectedRow] = []
    for line, cells in rows[1 if header else 0 :]:
        text = cells[column].strip() if column < len(cells) else ""
        try:
            name = username_of(text)
        except UsernameInvalid:
            rejected.append(
                RejectedRow(line, plain(text)[:60], "not a username, nor the address of a profile")
            )
            continue
        if name in accepted:
            rejected.append(RejectedRow(line, plain(text)[:60], f"the same as on line {accepted[name]}"))
        else:
            accepted[name] = line
    return Usernames(accepted=list(accepted), rejected=rejected, header=header)


def _text_of(content: bytes) -> str:
    if len(content) > BYTES_MAX:
        raise click.ClickException(f"The file is larger than {BYTES_MAX // 1_000_000} MB.")
    try:
        return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        raise click.ClickException("The file is not text in UTF-8. Save it as CSV (UTF-8).") from None


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """With their line numbers, without those in which nothing stands."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise click.ClickException(f"Line {reader.line_num + 1} cannot be read: {error}.") from None


def _column_of(rows: list[tuple[int, list[str]]]) -> tuple[int, str | None]:
    names = [cell.strip().casefold() for cell in rows[0][1]] if rows else []
    if COLUMN in names:
        return names.index(COLUMN), COLUMN
    if names and names[0] in HEADERS:
        return 0, names[0]
    return 0, None
