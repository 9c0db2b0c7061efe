"""Prices: from the file into the database, and from there into the running system."""

import json
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from features.costs.domain.prices import PriceBook
from infrastructure.database.costs.price_file import PriceFileInvalid, load_prices, read_price_list
from infrastructure.database.costs.prices import REFRESHED_AFTER_S, TRIED_AGAIN_AFTER_S, PostgresPriceBook
from shared.llm import Usage
from tests.integration.database.test_rate_limits import Clock, FlakyDatabase
from tests.support import NOON, dual_client, until

LIST = read_price_list()
BOOK = PriceBook([line.price for line in LIST.tokens], [line.price for line in LIST.units])
LATER = NOON + timedelta(days=3_650)
NEGOTIATED = """
insert into token_prices values ('openai', 'gpt-5-mini', $1, 0, 1000000, 0, 0, 0, 'negotiated')
"""


@pytest.mark.parametrize(
    ("provider", "model", "at", "dollars"),
    [
        ("openai", "gpt-4o-mini", "2026-01-01", "0.15 0.075 0.60"),
        ("openai", "gpt-5-mini", "2025-08-06", "0.30 0.30 1.20"),
        ("openai", "gpt-5-mini-2025-08-07", "2025-08-07", "0.25 0.025 2.00"),
        ("openai", "gpt-5", "2025-01-01", "0.60 0.60 2.40"),
        ("openai", "gpt-5", "2026-11-01", "1.25 0.125 10"),
        ("openai", "gpt-5.4-mini", "2026-11-01", "0.75 0.075 4.50"),
        ("openai", "text-embedding-3-small", "2026-11-01", "0.02 0.02 0"),
        ("anthropic", "claude-3-5-sonnet-20241022", "2025-01-01", "3 0.30 15"),
        ("anthropic", "claude-sonnet-5-5", "2026-10-06", "2 0.20 10"),
        ("anthropic", "claude-sonnet-5-5", "2026-11-01", "2 0.10 10"),
        ("anthropic", "claude-haiku-5-5", "2026-11-01", "0.10 0.01 0.50"),
    ],
)
def test_the_file_has_the_published_prices(provider, model, at, dollars):
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    kinds = (
        Usage(tokens_in=100_000),
        Usage(tokens_in=100_000, tokens_cached=100_000),
        Usage(tokens_out=100_000),
    )

    found = [BOOK.of_tokens(provider, model, usage, moment) for usage in kinds]

    assert found == [round(float(amount) * 1e8) for amount in dollars.split()]


def test_the_file_prices_what_is_not_sold_by_tokens():
    assert BOOK.of_units("apify", "run", 1, NOON) == 3_000_000
    assert BOOK.of_units("apify", "compute_hour", 0.5, NOON) == 125_000_000
    assert BOOK.of_units("scraperapi", "request", 1, NOON) == 490_000


@pytest.fixture
def write(tmp_path):
    """A function: a file of prices with one line, which can be changed."""

    def write(**changes):
        line = {
            "provider": "openai",
            "model": "m",
            "effective_from": "2026-01-01",
            "input": "1",
            "cached_input": "0.1",
            "cache_write": "1",
            "output": "2",
            "source": "s",
        }
        path = tmp_path / "prices.json"
        path.write_text(json.dumps({"tokens": [{**line, **changes}], "units": []}))
        return path

    return write


@pytest.mark.parametrize("price", ["-1", "0.0000000001", "NaN", "Infinity"])
def test_invalid_price_is_rejected(write, price):
    (line,) = read_price_list(write(input=price)).tokens

    with pytest.raises(PriceFileInvalid, match="is not a price"):
        _ = line.price


@pytest.mark.parametrize("change", [{"input": "x"}, {"typo": "1"}, {"effective_from": "soon"}])
def test_invalid_file_is_rejected_by_name(write, change):
    with pytest.raises(PriceFileInvalid, match=r"prices\.json is not a list of prices"):
        read_price_list(write(**change))


@pytest.fixture
async def spoilable_owner(spoilable_addresses):
    connection = await asyncpg.connect(spoilable_addresses.owner)
    yield connection
    await connection.close()


async def test_loading_prices_is_idempotent(spoilable_addresses, spoilable_owner):
    counts = [await load_prices(spoilable_addresses.owner, LIST) for _ in range(3)]

    assert counts == [len(LIST.tokens) + len(LIST.units), 0, 0]
    assert await spoilable_owner.fetchval("select count(*) from token_prices") == len(LIST.tokens)
    assert await spoilable_owner.fetchval("select count(*) from unit_prices") == len(LIST.units)
    assert await spoilable_owner.fetchval("select count(*) from token_prices where source = ''") == 0


async def test_changed_price_is_rejected(spoilable_addresses, spoilable_owner, write):
    await load_prices(spoilable_addresses.owner, read_price_list(write()))

    with pytest.raises(PriceFileInvalid, match="openai m from 2026-01-01 is another"):
        await load_prices(spoilable_addresses.owner, read_price_list(write(output="3")))

    assert await spoilable_owner.fetchval("select output_nanodollars from token_prices") == 2_000_000_000


async def test_prices_added_by_an_operator_are_kept(spoilable_addresses, spoilable_owner):
    await spoilable_owner.execute(NEGOTIATED, LATER)

    await load_prices(spoilable_addresses.owner, LIST)
    await load_prices(spoilable_addresses.owner, LIST)

    assert await spoilable_owner.fetchval("select count(*) from token_prices") == len(LIST.tokens) + 1


@pytest.fixture
async def spoilable_database(spoilable_addresses):
    async with dual_client(spoilable_addresses) as database:
        yield database


def price_of(book, at=NOON):
    return book.of_tokens("openai", "gpt-5-mini", Usage(tokens_in=1_000_000), at)


async def test_database_has_the_prices_of_the_file(spoilable_addresses, spoilable_database):
    await load_prices(spoilable_addresses.owner, LIST)
    book = PostgresPriceBook(spoilable_database)
    await book.refresh()

    for line in LIST.tokens:
        usage = Usage(tokens_in=300_000, tokens_cached=1_000, tokens_cache_written=100, tokens_out=77)
        asked = (line.provider, line.model, usage, LATER)
        assert book.of_tokens(*asked) == BOOK.of_tokens(*asked)
    for line in LIST.units:
        assert book.of_units(line.provider, line.unit, 3, LATER) == 3 * line.price.nanodollars


async def test_new_price_applies_within_five_minutes_without_blocking_a_caller(
    spoilable_addresses, spoilable_owner, spoilable_database
):
    await load_prices(spoilable_addresses.owner, LIST)
    clock = Clock()
    book = PostgresPriceBook(spoilable_database, now_s=clock)
    await book.refresh()
    await spoilable_owner.execute(NEGOTIATED, NOON)

    clock.now_s += REFRESHED_AFTER_S - 0.001
    assert price_of(book) == 250_000_000
    await book.close()
    assert price_of(book) == 250_000_000

    clock.now_s += 0.001
    assert price_of(book) == 250_000_000  # the next read has the new price
    await book.close()
    assert price_of(book) == 1_000_000


async def test_last_prices_apply_during_an_outage_and_are_read_again_soon(
    spoilable_addresses, spoilable_owner, spoilable_database
):
    await load_prices(spoilable_addresses.owner, LIST)
    flaky, clock = FlakyDatabase(spoilable_database), Clock()
    book = PostgresPriceBook(flaky, now_s=clock)
    await book.refresh()
    await spoilable_owner.execute(NEGOTIATED, NOON)
    flaky.away_for = "select"
    await book.refresh()
    assert price_of(book) == 250_000_000

    flaky.away_for = None
    clock.now_s += TRIED_AGAIN_AFTER_S
    await until(lambda: price_of(book) == 1_000_000)
    await book.close()


async def test_schema_without_prices_does_not_prevent_a_start(spoilable_owner, spoilable_database):
    await spoilable_owner.execute("drop table token_prices")
    book = PostgresPriceBook(spoilable_database)

    await book.refresh()

    assert price_of(book) is None
    await book.close()
