"""Usernames from a CSV file or a plain list."""

import codecs
import csv
import io
import re
from collections.abc import Iterator

import click
import msgspec

from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile.profile import username_of
from shared.text import plain

BYTES_MAX = 10_000_000
DELIMITERS = ",;\t"
SAMPLES_COUNT = 3
INSTAGRAM = "instagram"
# In order of preference; in lower case with single spaces.
RANKED_HEADERS = (
    ("username", "usernames", "user name"),
    ("instagram username", "instagram handle", INSTAGRAM),
    ("handle", "handles"),
    ("profile url", "profile link", "profile", "account", "user", "url", "link"),
)
INSTAGRAM_RANK = (1, 3)  # for any other header with this prefix
# If a file has a single column, its header may be one of these; among other columns they contain real names.
LONE_HEADERS = ("name", "names")
# A column such as "Instagram followers" describes the profile and does not identify it.
DESCRIPTIONS = frozenset({"followers", "following", "posts", "likes", "engagement", "bio", "count"})
SEPARATORS = re.compile(r"[\W_]+")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class RejectedRow(msgspec.Struct, frozen=True):
    line: int
    text: str
    reason: str


class Usernames(msgspec.Struct, frozen=True, kw_only=True):
    """Unique usernames in the order of the file."""

    accepted: list[str]
    rejected: list[RejectedRow]
    header: str | None  # header of the column that was read; None if the first row is data

    @property
    def samples(self) -> list[str]:
        return self.accepted[:SAMPLES_COUNT]


def read_usernames(content: bytes, wanted: str | None = None) -> Usernames:
    """Reads the column ``wanted`` (its header, or its number from 1), else the column with the best matching
    header, else the only column. Raises UsageError if no column matches, and ClickException if the content is
    not text.
    """
    rows = list(_rows(_text_of(content)))
    column, header = _column_of(rows, wanted)
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
    """Non-empty rows with their line numbers."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise click.ClickException(f"Line {reader.line_num + 1} cannot be read: {error}.") from None


def _column_of(rows: list[tuple[int, list[str]]], wanted: str | None) -> tuple[int, str | None]:
    """Returns the index of the column, and its header unless the first row is data."""
    first = [cell.strip() for cell in rows[0][1]] if rows else []
    is_list = all(not any(cell.strip() for cell in cells[1:]) for _, cells in rows)
    ranks = {
        rank: column
        for column, cell in reversed([*enumerate(first)])
        if (rank := _rank(cell, may_be_username=is_list))
    }
    if wanted is not None:
        column = _wanted_column(wanted, first)
        is_header = (
            ranks or not wanted.isdecimal() or any(_plain_header(cell) in LONE_HEADERS for cell in first)
        )
        return column, first[column] if is_header else None
    if ranks:
        column = ranks[min(ranks)]
        return column, first[column]
    if profiles := [column for column, cell in enumerate(first) if _is_profile(cell)]:
        return profiles[0], None
    if is_list:
        return 0, first[0] if first and _plain_header(first[0]) in LONE_HEADERS else None
    raise click.UsageError(
        f"No column is called username, instagram, handle or profile url. {_columns(first)}"
    )


def _plain_header(cell: str) -> str:
    return SEPARATORS.sub(" ", cell.casefold()).strip()


def _is_profile(cell: str) -> bool:
    return cell.startswith("@") or "instagram.com/" in cell.casefold()


def _rank(cell: str, *, may_be_username: bool) -> tuple[int, int] | None:
    """Ranks how well the header matches; the lowest is the best, None does not match. The first line of a
    list may be a username such as instagram_fan, so in a list only the known headers match, or one with a
    space.
    """
    header = _plain_header(cell)
    if _is_profile(cell):
        return None
    for group, names in enumerate(RANKED_HEADERS):
        if header in names:
            return group, names.index(header)
    is_described = not DESCRIPTIONS.isdisjoint(header.split())
    if header.startswith(INSTAGRAM) and not is_described and (" " in cell or not may_be_username):
        return INSTAGRAM_RANK
    return None


def _wanted_column(wanted: str, first: list[str]) -> int:
    headers = [_plain_header(cell) for cell in first]
    name = _plain_header(wanted)
    if name in headers:
        return headers.index(name)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(first):
        return int(wanted) - 1
    raise click.UsageError(f"There is no column {plain(wanted)[:60]}. {_columns(first)}")


def _columns(first: list[str]) -> str:
    listed = ", ".join(plain(cell)[:60] or "(empty)" for cell in first)
    return f"The first row is: {listed}. Name the column with the usernames: --column HEADER (or its number)."
