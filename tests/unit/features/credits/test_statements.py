"""Pages and exports of statements, and hostile cursors."""

import uuid

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.credits.application import statements as statements_module
from features.credits.application.ports import EntryFilter
from features.credits.application.statements import Statements
from features.credits.domain.ledger import Entry
from shared.caller import Caller
from shared.pagination import CursorInvalid, decode_position, encode_position
from tests.support import NOON

CALLER = Caller(id=uuid.uuid4(), claims="{}")
EVERY_KIND = EntryFilter()


def entry_at(position):
    return Entry(
        position=position,
        kind="grant",
        transaction_type="admin_grant",
        reference=f"r{position}",
        credits_delta=1,
        held_delta=0,
        balance_after=position,
        held_after=0,
        description=None,
        created_at=NOON,
    )


class ListedEntries:
    """Reader of the entries 1 to ``count`` that records its calls."""

    def __init__(self, count):
        self.count = count
        self.questions = []

    async def entries(self, caller, only, *, before, entries_max):
        self.questions.append((caller, only, before, entries_max))
        last = self.count if before is None else min(before - 1, self.count)
        return [entry_at(position) for position in range(last, 0, -1)][:entries_max]


def positions(entries):
    return [entry.position for entry in entries]


@pytest.mark.parametrize(
    ("count", "limit", "shown", "has_next"),
    [
        (0, 2, [], False),
        (1, 2, [1], False),
        (2, 2, [2, 1], False),
        (3, 2, [3, 2], True),
        (200, 1, [200], True),
    ],
)
async def test_next_page_exists_exactly_if_entries_are_left(count, limit, shown, has_next):
    page = await Statements(ListedEntries(count)).page(CALLER, EVERY_KIND, cursor=None, limit=limit)

    assert positions(page.items) == shown
    assert (page.next_cursor is not None) is has_next


async def test_following_the_cursors_returns_every_entry_once():
    statements = Statements(ListedEntries(7))

    seen, cursor = [], None
    while True:
        page = await statements.page(CALLER, EVERY_KIND, cursor=cursor, limit=3)
        seen += positions(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_page_reads_one_entry_more_than_its_limit():
    reader = ListedEntries(0)
    only = EntryFilter(kind="hold", since=NOON)

    await Statements(reader).page(CALLER, only, cursor=encode_position(5), limit=2)

    assert reader.questions == [(CALLER, only, 5, 3)]


async def test_invalid_cursor_is_rejected_without_a_query():
    reader = ListedEntries(3)

    with pytest.raises(CursorInvalid):
        await Statements(reader).page(CALLER, EVERY_KIND, cursor="x", limit=2)

    assert reader.questions == []


@pytest.mark.parametrize(("count", "questions"), [(0, 1), (2, 1), (3, 2), (6, 3), (7, 3)])
async def test_export_is_read_in_chunks_to_the_end(monkeypatch, count, questions):
    monkeypatch.setattr(statements_module, "EXPORT_CHUNK", 3)
    reader = ListedEntries(count)

    chunks = [chunk async for chunk in Statements(reader).everything(CALLER, EVERY_KIND)]

    assert [position for chunk in chunks for position in positions(chunk)] == list(range(count, 0, -1))
    assert len(reader.questions) == questions


async def test_entries_appended_during_an_export_do_not_shift_it(monkeypatch):
    monkeypatch.setattr(statements_module, "EXPORT_CHUNK", 2)
    reader = ListedEntries(4)

    seen = []
    async for chunk in Statements(reader).everything(CALLER, EVERY_KIND):
        seen += positions(chunk)
        reader.count += 10

    assert seen == [4, 3, 2, 1]


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_cursor_decodes_to_its_position(position):
    cursor = encode_position(position)

    assert decode_position(cursor) == position
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert len(cursor) <= 64


def opaque(text):
    return text.encode().hex()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!!!",
        "=",
        "====",
        "A",
        "5",
        "p5",
        "\0",
        "ä",
        "\ud800",
        "/w",
        "x" * 10_000,
        opaque(""),
        opaque("p"),
        opaque("5"),
        opaque("q5"),
        opaque("pp5"),
        opaque("p-5"),
        opaque("p+5"),
        opaque("p 5"),
        opaque("p5 "),
        opaque("p5\n"),
        opaque("p1_000"),
        opaque("p1e3"),
        opaque("p5.0"),
        opaque("p٣"),
        opaque("p²"),
        opaque("p" + "9" * 19),
        opaque("p" + "9" * 10_000),
        opaque("p5'; drop table credit_entries; --"),
        msgspec.json.encode({"position": 5}).decode(),
    ],
    ids=lambda cursor: ascii(cursor[:30]),
)
def test_hostile_cursor_is_rejected(cursor):
    with pytest.raises(CursorInvalid):
        decode_position(cursor)


@settings(deadline=None)
@given(st.text() | st.text(alphabet="ABCDEFcpPDEyMz019-_=", max_size=12) | st.text().map(opaque))
def test_any_text_is_a_valid_position_or_rejected(text):
    try:
        position = decode_position(text)
    except CursorInvalid:
        return

    assert 0 <= position < 10**18
