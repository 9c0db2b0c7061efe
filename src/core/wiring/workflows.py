"""What carries out each kind of run."""

from dataclasses import dataclass

from core.engine.execution import Workflow
from core.wiring.businesses import DescribedBusinesses
from core.wiring.costs import Books
from core.wiring.providers import Providers
from core.workflows.analysis import AnalysisWorkflow
from core.workflows.bulk import BulkWorkflow
from core.workflows.records import RunRecords
from features.analysis.application.ports import Analyst, AnonymousResults, Results
from features.analysis.application.profiles import Profiles
from features.analysis.application.steps import AnalysisSteps
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.orders import ANONYMOUS_KIND, BULK_KIND
from features.analysis.domain.prompts import FORMS
from features.analysis.domain.visitors import visitor_result
from infrastructure.database.analysis_costs import PostgresPrices
from infrastructure.database.anonymous_analyses import PostgresAnonymousResults
from infrastructure.database.bulk_items import PostgresBulkItems
from infrastructure.database.businesses import PostgresBusinesses
from infrastructure.database.data_points import AnalysisPoints
from infrastructure.database.leads import PostgresResults
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import Database


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where results go. Each joins the transaction that charges for them."""

    results: Results
    visitors: AnonymousResults

    async def save(self, analysis: Analysis) -> None:
        await self.results.save(analysis)

    async def save_anonymous(self, analysis: Analysis) -> None:
        assert analysis.answers.light is not None, "visitors are given light ones"
        result = visitor_result(
            analysis.profile,
            analysis.facts,
            analysis.score,
            analysis.answers.light,
            is_simulated=analysis.is_simulated,
        )
        await self.visitors.save(analysis.id, result)


def workflows_of(database: Database, books: Books, providers: Providers) -> tuple[Workflow, ...]:
    outlets = outlets_on(database)
    return analysis_workflows(database, books, providers.profiles, providers.gateway, outlets)


def outlets_on(database: Database) -> Outlets:
    return Outlets(PostgresResults(database.admin("leads")), PostgresAnonymousResults(database))


def analysis_workflows(
    database: Database, books: Books, profiles: Profiles, analyst: Analyst, outlets: Outlets
) -> tuple[Workflow, ...]:
    session = database.admin("runs")
    runs = PostgresRuns(session)
    steps = AnalysisSteps(profiles, analyst, DescribedBusinesses(PostgresBusinesses(session)))
    records = RunRecords(runs, AnalysisPoints(books.points))
    analysis = AnalysisWorkflow(steps, outlets.save, records)
    anonymous = AnalysisWorkflow(steps, outlets.save_anonymous, records)
    bulk = BulkWorkflow(runs, PostgresBulkItems(session), PostgresPrices(session), session.transaction)
    return (
        *(Workflow(f"{analysis_type}_analysis", analysis.carry_out) for analysis_type in FORMS),
        Workflow(ANONYMOUS_KIND, anonymous.carry_out),
        Workflow(BULK_KIND, bulk.carry_out),
    )
