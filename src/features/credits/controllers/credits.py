"""Routes for the credits of an account."""

import msgspec
from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.response import Stream

from features.credits.application.balances import Balances
from features.credits.application.ports import EntryFilter
from features.credits.application.statements import Statements
from features.credits.domain.ledger import Balance, Entry, Kind
from shared.http import csv_export
from shared.http.parameters import AuthenticatedRequest, Limit, PositionCursor, Time
from shared.http.responses import ok
from shared.http.route_policy import needs
from shared.pagination import Page
from shared.timestamps import as_utc

CSV_COLUMNS = [field.encode_name for field in msgspec.structs.fields(Entry)]


class CreditsController(Controller):
    path = "/v1/credits"
    tags = ("Credits",)
    opt = needs("credits:read")

    @get("/balance")
    async def get_credit_balance(
        self, request: AuthenticatedRequest, balances: NamedDependency[Balances], at: Time = None
    ) -> Balance:
        """Get the available and held credits of the account.

        Held credits are reserved for work in progress. With `at`, the balance is that of a time in the past.
        Expired credits are never included.
        """
        instant = as_utc(at)
        return await (balances.as_of(request.user, instant) if instant else balances.current(request.user))

    @get("/transactions")
    async def list_credit_transactions(
        self,
        request: AuthenticatedRequest,
        statements: NamedDependency[Statements],
        cursor: PositionCursor = None,
        limit: Limit = 50,
        kind: FromQuery[Kind | None] = None,
        since: Time = None,
        until: Time = None,
    ) -> Page[Entry]:
        """List the ledger entries of the account, newest first.

        `since` is included, `until` is excluded.
        """
        entry_filter = EntryFilter(kind=kind, since=as_utc(since), until=as_utc(until))
        return await statements.page(request.user, entry_filter, cursor=cursor, limit=limit)

    @get(
        "/transactions.csv",
        media_type=csv_export.MEDIA_TYPE,
        responses={200: ok(str, "A CSV file", csv_export.MEDIA_TYPE)},
    )
    async def export_credit_transactions(
        self,
        request: AuthenticatedRequest,
        statements: NamedDependency[Statements],
        kind: FromQuery[Kind | None] = None,
        since: Time = None,
        until: Time = None,
    ) -> Stream:
        """Export all ledger entries of the account as CSV, with the same filters as the list."""
        entry_filter = EntryFilter(kind=kind, since=as_utc(since), until=as_utc(until))
        chunks = statements.everything(request.user, entry_filter)
        return await csv_export.csv_response("credit-transactions.csv", Entry, CSV_COLUMNS, chunks)
