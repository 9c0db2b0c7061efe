"""What carries out each kind of run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.engine.execution import Workflow
from core.wiring.businesses import DescribedBusinesses
from core.wiring.costs import Books
from core.wiring.providers import Providers
from core.workflows.analysis import AnalysisWorkflow
from core.workflows.bulk import BulkWorkflow
from core.workflows.records import RunRecords
from core.workflows.subjects import ANONYMOUS_KIND, BULK_KIND, KINDS
from features.analysis.application.ports import Analyst
from features.analysis.application.profiles import Profiles
from features.analysis.application.steps import AnalysisSteps
from features.analysis.domain.analysis import Analysis
from features.analysis.domain.profile import AnalysisType
from infrastructure.database.bulk_items import PostgresBulkItems
from infrastructure.database.businesses import PostgresBusinesses
from infrastructure.database.data_points import AnalysisPoints
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import Database


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where results go, and what an analysis costs. Each joins the transaction that is open."""

    save: Callable[[Analysis], Awaitable[None]]
    save_anonymous: Callable[[Analysis], Awaitable[None]]
    price_of: Callable[[AnalysisType], Awaitable[int]]


def analysis_workflows(
    database: Database, books: Books, profiles: Profiles, analyst: Analyst, outlets: Outlets
) -> tuple[Workflow, ...]:
    session = database.admin("runs")
    runs = PostgresRuns(session)
    steps = AnalysisSteps(profiles, analyst, DescribedBusinesses(PostgresBusinesses(session)))
    records = RunRecords(runs, AnalysisPoints(books.points))
    analysis = AnalysisWorkflow(steps, outlets.save, records)
    anonymous = AnalysisWorkflow(steps, outlets.save_anonymous, records)
    bulk = BulkWorkflow(runs, PostgresBulkItems(session), outlets.price_of, session.transaction)
    return (
        *(Workflow(kind, analysis.carry_out) for kind in KINDS.values()),
        Workflow(ANONYMOUS_KIND, anonymous.carry_out),
        Workflow(BULK_KIND, bulk.carry_out),
    )


def workflows_of(database: Database, books: Books, providers: Providers) -> tuple[Workflow, ...]:
    return ()
