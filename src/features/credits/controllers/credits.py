"""HTTP handlers for the credits of an account."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromQuery, QueryParameter
from litestar.response import Stream

from features.credits.application.balances import Balances
from features.credits.application.ports import EntryFilter
from features.credits.application.statements import Statements
from features.credits.controllers.csv_export import csv_line
from features.credits.domain.ledger import Entry, Kind
from shared.caller import Caller
from shared.http.parameters import Limit, PositionCursor
from shared.http.route_policy import needs
from shared.timestamps import as_utc

At = Annotated[
    datetime | None,
    QueryParameter(description="A past instant with its offset, as 2026-11-01T00:00:00Z."),
]


class BalanceResponse(msgspec.Struct, frozen=True, kw_only=True):
    account_id: UUID
    credits_available: int
    credits_held: int
    next_expiry_at: datetime | None


class EntryResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    kind: Kind
    transaction_type: str
    reference: str
    credits_delta: int
    held_delta: int
    balance_after: int
    held_after: int
    description: str | None
    created_at: datetime


class StatementResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[EntryResponse]
    next_cursor: str | None


BALANCE_EXAMPLE = {
    "account_id": "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11",
    "credits_available": 20,
    "credits_held": 5,
    "next_expiry_at": None,
}
ENTRY_EXAMPLE = {
    "id": 2,
    "kind": "hold",
    "transaction_type": "analysis",
    "reference": "run:5b1c",
    "credits_delta": -5,
    "held_delta": 5,
    "balance_after": 20,
    "held_after": 5,
    "description": "Deep analysis",
    "created_at": "2026-11-01T09:30:00Z",
}


def _entry_out(entry: Entry) -> EntryResponse:
    return EntryResponse(
        id=entry.position,
        kind=entry.kind,
        transaction_type=entry.transaction_type,
        reference=entry.reference,
        credits_delta=entry.credits_delta,
        held_delta=entry.held_delta,
        balance_after=entry.balance_after,
        held_after=entry.held_after,
        description=entry.description,
        created_at=entry.created_at,
    )


async def _csv(chunks: AsyncIterator[list[Entry]]) -> AsyncIterator[str]:
    yield csv_line(EntryResponse.__struct_fields__)
    async for chunk in chunks:
        yield "".join(csv_line(msgspec.structs.astuple(_entry_out(entry))) for entry in chunk)


class CreditsController(Controller):
    path = "/v1/credits"
    tags = ("Credits",)
    opt = needs("credits:read")

    @get(
        "/balance",
        operation_id="getCreditBalance",
        summary="Balance",
        responses={
            200: ResponseSpec(
                BalanceResponse, description="The balance", examples=[Example(value=BALANCE_EXAMPLE)]
            ),
        },
    )
    async def balance(
        self,
        request: Request[Caller, Any, Any],
        balances: NamedDependency[Balances],
        at: At = None,
    ) -> BalanceResponse:
        """How many credits the account can spend, and how many are set aside for work in progress.

        With `at`, the balance as it was at that time. Credits that have expired never count.
        """
        caller = request.user
        instant = as_utc(at)
        balance = await (balances.as_of(caller, instant) if instant else balances.current(caller))
        return BalanceResponse(
            account_id=balance.account_id,
            credits_available=balance.credits_available,
            credits_held=balance.credits_held,
            next_expiry_at=balance.next_expiry_at,
        )

    @get(
        "/transactions",
        operation_id="listCreditTransactions",
        summary="Statement",
        responses={
            200: ResponseSpec(
                StatementResponse,
                description="A page",
                examples=[Example(value={"items": [ENTRY_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def transactions(
        self,
        request: Request[Caller, Any, Any],
        statements: NamedDependency[Statements],
        cursor: PositionCursor = None,
        limit: Limit = 50,
        kind: FromQuery[Kind | None] = None,
        since: At = None,
        until: At = None,
    ) -> StatementResponse:
        """Every movement of the account's credits, newest first.

        `since` is included, `until` is not. Follow `next_cursor` until it is null.
        """
        page = await statements.page(
            request.user,
            EntryFilter(kind=kind, since=as_utc(since), until=as_utc(until)),
            cursor=cursor,
            limit=limit,
        )
        return StatementResponse(
            items=[_entry_out(entry) for entry in page.entries], next_cursor=page.next_cursor
        )

    @get(
        "/transactions.csv",
        operation_id="exportCreditTransactions",
        summary="Statement as CSV",
        media_type="text/csv",
        responses={
            200: ResponseSpec(
                str,
                description="A file",
                media_type="text/csv",
                examples=[Example(value=",".join(EntryResponse.__struct_fields__))],
            ),
        },
    )
    async def export(
        self,
        request: Request[Caller, Any, Any],
        statements: NamedDependency[Statements],
        kind: FromQuery[Kind | None] = None,
        since: At = None,
        until: At = None,
    ) -> Stream:
        """The whole statement as one file, with the same filters."""
        chunks = statements.everything(
            request.user, EntryFilter(kind=kind, since=as_utc(since), until=as_utc(until))
        )
        # Read the first chunk before the response starts, so that an error still becomes a problem document.
        first = await anext(chunks)
        return Stream(
            _csv(_chain(first, chunks)),
            media_type="text/csv",
            headers={"Content-Disposition": 'attachment; filename="credit-transactions.csv"'},
        )


async def _chain(first: list[Entry], rest: AsyncIterator[list[Entry]]) -> AsyncIterator[list[Entry]]:
    yield first
    async for chunk in rest:
        yield chunk
