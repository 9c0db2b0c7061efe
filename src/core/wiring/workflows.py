"""Workflows for each kind of run."""

from dataclasses import dataclass

from core.engine.workflow import Workflow
from core.wiring.businesses import DescribedBusinesses
from core.wiring.costs import CostRecorders
from core.wiring.providers import Providers
from core.workflows.analysis import AnalysisWorkflow
from core.workflows.bulk_analysis import BulkWorkflow
from core.workflows.records import RunMetrics
from features.analysis.application.ports import AnalysisResults, AnonymousResults, CompletionProvider
from features.analysis.application.profile_reader import ProfileReader
from features.analysis.application.steps import AnalysisSteps
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.anonymous import visitor_result
from features.analysis.domain.prompting.prompts import FORMS
from features.analysis.domain.requests import ANONYMOUS_KIND, BULK_KIND
from infrastructure.database.analysis.anonymous import PostgresAnonymousResults
from infrastructure.database.analysis.bulk_items import PostgresBulkItems
from infrastructure.database.analysis.prices import PostgresPrices
from infrastructure.database.business.profile_lookup import PostgresBusinessLookup
from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import AnalysisMetrics
from infrastructure.database.leads.leads import PostgresAnalysisResults
from infrastructure.database.runs.runs import PostgresRuns


@dataclass(frozen=True, slots=True)
class AnalysisOutputs:
    """Repositories for results. Each write joins the transaction that charges for the run."""

    results: AnalysisResults
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


def workflows_of(database: Database, books: CostRecorders, providers: Providers) -> tuple[Workflow, ...]:
    outlets = outlets_on(database)
    return analysis_workflows(database, books, providers.profiles, providers.gateway, outlets)


def outlets_on(database: Database) -> AnalysisOutputs:
    return AnalysisOutputs(
        PostgresAnalysisResults(database.admin("leads")), PostgresAnonymousResults(database)
    )


def analysis_workflows(
    database: Database,
    books: CostRecorders,
    profiles: ProfileReader,
    analyst: CompletionProvider,
    outlets: AnalysisOutputs,
) -> tuple[Workflow, ...]:
    session = database.admin("runs")
    runs = PostgresRuns(session)
    steps = AnalysisSteps(profiles, analyst, DescribedBusinesses(PostgresBusinessLookup(session)))
    records = RunMetrics(runs, AnalysisMetrics(books.points))
    analysis = AnalysisWorkflow(steps, outlets.save, records)
    anonymous = AnalysisWorkflow(steps, outlets.save_anonymous, records)
    bulk = BulkWorkflow(runs, PostgresBulkItems(session), PostgresPrices(session), session.transaction)
    return (
        *(Workflow(f"{analysis_type}_analysis", analysis.carry_out) for analysis_type in FORMS),
        Workflow(ANONYMOUS_KIND, anonymous.carry_out),
        Workflow(BULK_KIND, bulk.carry_out),
    )
