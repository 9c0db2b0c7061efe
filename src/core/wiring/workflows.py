"""Workflows for each kind of run."""

from core.engine.workflow import Workflow
from core.wiring.businesses import DescribedBusinesses
from core.wiring.costs import CostRecorders
from core.wiring.providers import Providers
from core.workflows.analysis import AnalysisWorkflow, log_alert
from core.workflows.bulk_analysis import BulkWorkflow
from features.analysis.application.ports import CompletionProvider
from features.analysis.application.profile_reader import ProfileReader
from features.analysis.application.run_metrics import RunMetrics
from features.analysis.application.save_result import SaveResult
from features.analysis.application.steps import AnalysisSteps
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


def workflows_of(database: Database, books: CostRecorders, providers: Providers) -> tuple[Workflow, ...]:
    return analysis_workflows(database, books, providers.profiles, providers.gateway, save_result(database))


def save_result(database: Database) -> SaveResult:
    return SaveResult(PostgresAnalysisResults(database.admin("leads")), PostgresAnonymousResults(database))


def analysis_workflows(
    database: Database,
    books: CostRecorders,
    profiles: ProfileReader,
    completions: CompletionProvider,
    result: SaveResult,
) -> tuple[Workflow, ...]:
    session = database.admin("runs")
    runs = PostgresRuns(session)
    steps = AnalysisSteps(profiles, completions, DescribedBusinesses(PostgresBusinessLookup(session)))
    metrics = RunMetrics(runs, AnalysisMetrics(books.points), log_alert)
    analysis = AnalysisWorkflow(steps, result, metrics)
    bulk = BulkWorkflow(runs, PostgresBulkItems(session), PostgresPrices(session), session.transaction)
    return (
        *(Workflow(f"{analysis_type}_analysis", analysis.run) for analysis_type in FORMS),
        Workflow(ANONYMOUS_KIND, analysis.run),
        Workflow(BULK_KIND, bulk.run),
    )
