"""Price file and its import into the database."""

from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import LiteralString

import asyncpg
import msgspec
from asyncpg import Connection, Record

from features.costs.domain.prices import TokenPrice, UnitPrice
from infrastructure.database.clients import DatabaseUnavailable

FILE = Path(__file__).parent / "prices.json"
NANODOLLARS = 1_000_000_000

ADD_MODEL_PRICES: LiteralString = """
insert into public.token_prices (
    provider, model, effective_from, tokens_in_above, input_nanodollars, cached_input_nanodollars,
    cache_write_nanodollars, output_nanodollars, source
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict do nothing
"""
ADD_UNIT_PRICES: LiteralString = """
insert into public.unit_prices (provider, unit, effective_from, nanodollars, source)
values ($1, $2, $3, $4, $5)
on conflict do nothing
"""
MODEL_PRICES: LiteralString = """
select provider, model, effective_from, tokens_in_above, input_nanodollars, cached_input_nanodollars,
    cache_write_nanodollars, output_nanodollars
from public.token_prices
"""
UNIT_PRICES: LiteralString = "select provider, unit, effective_from, nanodollars from public.unit_prices"


class PriceFileInvalid(RuntimeError):
    pass


class _TokenLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    provider: str
    model: str
    effective_from: date
    input: Decimal
    cached_input: Decimal
    cache_write: Decimal
    output: Decimal
    source: str
    tokens_in_above: int = 0

    @property
    def price(self) -> TokenPrice:
        return TokenPrice(
            provider=self.provider,
            model=self.model,
            effective_from=_midnight(self.effective_from),
            input_nanodollars=_nanodollars(self.input),
            cached_input_nanodollars=_nanodollars(self.cached_input),
            cache_write_nanodollars=_nanodollars(self.cache_write),
            output_nanodollars=_nanodollars(self.output),
            tokens_in_above=self.tokens_in_above,
        )


class _UnitLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    provider: str
    unit: str
    effective_from: date
    dollars: Decimal
    source: str

    @property
    def price(self) -> UnitPrice:
        return UnitPrice(
            provider=self.provider,
            unit=self.unit,
            effective_from=_midnight(self.effective_from),
            nanodollars=_nanodollars(self.dollars),
        )


class PriceFile(msgspec.Struct, frozen=True, kw_only=True):
    tokens: list[_TokenLine]
    units: list[_UnitLine]


def read_price_list(path: Path = FILE) -> PriceFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PriceFile)
    except msgspec.DecodeError as error:
        raise PriceFileInvalid(f"{path.name} is not a list of prices: {error}") from None


async def load_prices(url: str, prices: PriceFile) -> int:
    """Adds the prices that the database does not have and returns their number. Idempotent, also
    concurrently. Raises PriceFileInvalid if a stored price differs.
    """
    try:
        # No statement cache, because the owner's URL may lead to a transaction pooler.
        connection = await asyncpg.connect(url, timeout=10, statement_cache_size=0)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise DatabaseUnavailable from error
    try:
        async with connection.transaction():
            return await _load(connection, prices)
    finally:
        await connection.close()


async def _load(connection: Connection[Record], prices: PriceFile) -> int:
    known = await _known(connection)
    for line in prices.tokens:
        await connection.execute(ADD_MODEL_PRICES, *_token_row(line.price), line.source)
    for line in prices.units:
        await connection.execute(ADD_UNIT_PRICES, *msgspec.structs.astuple(line.price), line.source)
    kept = await _known(connection)
    for line in (*prices.tokens, *prices.units):
        if line.price not in kept:
            raise PriceFileInvalid(_differing(line))
    return len(kept) - len(known)


def _token_row(price: TokenPrice) -> tuple[object, ...]:
    provider, model, effective_from, *amounts, tokens_in_above = msgspec.structs.astuple(price)
    return (provider, model, effective_from, tokens_in_above, *amounts)


async def _known(connection: Connection[Record]) -> set[TokenPrice | UnitPrice]:
    return {TokenPrice(**row) for row in await connection.fetch(MODEL_PRICES)} | {
        UnitPrice(**row) for row in await connection.fetch(UNIT_PRICES)
    }


def _differing(line: _TokenLine | _UnitLine) -> str:
    name = line.model if isinstance(line, _TokenLine) else line.unit
    return (
        f"The price of {line.provider} {name} from {line.effective_from} is another in the database than in"
        " the file. What calls have cost was computed with it: leave it, and add a price with a later"
        " effective_from."
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _nanodollars(dollars: Decimal) -> int:
    amount = dollars * NANODOLLARS
    if not amount.is_finite() or amount < 0 or amount != int(amount):
        raise PriceFileInvalid(f"{dollars} is not a price: dollars, with nine decimals at the most.")
    return int(amount)
