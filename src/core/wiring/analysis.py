"""Use cases that quote and start analyses. The workflows that run them are in ``wiring.workflows``."""

from dataclasses import dataclass

import msgspec

from core.wiring.providers import utc_now
from features.analysis.application.anonymous import AnonymousAnalyses
from features.analysis.application.ports import Durations
from features.analysis.application.quotes import Quotes, RefundTerms
from features.analysis.application.start_analysis import StartAnalysis
from features.analysis.application.start_bulk import StartBulk
from features.runs.domain.refunds import REFUND_POLICY
from infrastructure.database.analysis.anonymous import PostgresAnonymousResults
from infrastructure.database.analysis.bulk_items import PostgresBulkItems
from infrastructure.database.analysis.prices import PostgresPrices
from infrastructure.database.analysis.quotas import PostgresAnalysisQuotas
from infrastructure.database.analysis.run_starter import PostgresAnalysisRuns
from infrastructure.database.clients import Database
from infrastructure.database.runs.runs import PostgresRuns

REFUND = msgspec.convert(REFUND_POLICY, RefundTerms, from_attributes=True)


@dataclass(frozen=True, slots=True)
class AnalysisUseCases:
    starts: StartAnalysis
    quotes: Quotes
    bulk: StartBulk
    anonymous: AnonymousAnalyses


def analysis_use_cases(database: Database, durations: Durations) -> AnalysisUseCases:
    session = database.admin("analysis starts")
    runs = PostgresAnalysisRuns(session, PostgresRuns(session), PostgresBulkItems(session))
    prices = PostgresPrices(session)
    terms = PostgresAnalysisQuotas(database)
    return AnalysisUseCases(
        starts=StartAnalysis(runs, prices),
        quotes=Quotes(terms, prices, terms, durations, REFUND, utc_now),
        bulk=StartBulk(runs, terms, prices, terms),
        anonymous=AnonymousAnalyses(PostgresAnonymousResults(database)),
    )
