"""How analyses begin. What carries them out is elsewhere."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from core.wiring.providers import utc_now
from features.analysis.application.anonymous import AnonymousAnalyses
from features.analysis.application.bulk_starts import BulkStarts
from features.analysis.application.ports import Durations
from features.analysis.application.quotes import Quotes, RefundTerms
from features.analysis.application.starts import AnalysisStarts
from features.runs.domain.refunds import REFUND_POLICY
from infrastructure.database.analysis_costs import PostgresPrices
from infrastructure.database.analysis_runs import PostgresAnalysisRuns
from infrastructure.database.analysis_terms import PostgresTerms
from infrastructure.database.anonymous_analyses import PostgresAnonymousResults
from infrastructure.database.bulk_items import PostgresBulkItems
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import Database

REFUND = msgspec.convert(REFUND_POLICY, RefundTerms, from_attributes=True)


@dataclass(frozen=True, slots=True)
class Beginnings:
    starts: AnalysisStarts
    quotes: Quotes
    bulk: BulkStarts
    anonymous: AnonymousAnalyses


@asynccontextmanager
async def open_beginnings(database: Database, durations: Durations) -> AsyncGenerator[Beginnings]:
    session = database.admin("analysis starts")
    runs = PostgresAnalysisRuns(session, PostgresRuns(session), PostgresBulkItems(session))
    prices = PostgresPrices(session)
    terms = PostgresTerms(database)
    visitors = PostgresAnonymousResults(database)
    try:
        yield Beginnings(
            starts=AnalysisStarts(runs, prices),
            quotes=Quotes(terms, prices, terms, durations, REFUND, utc_now),
            bulk=BulkStarts(runs, terms, prices, terms),
            anonymous=AnonymousAnalyses(visitors),
        )
    finally:
        await visitors.close()
