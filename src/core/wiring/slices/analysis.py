"""Analyses: quotes, starts, results, and the workflows that execute them."""

from datetime import timedelta

import msgspec

from core.engine.workflow import Queue, Workflow
from core.wiring.slice import ApiParts, Resources, Slice, WorkerParts
from core.workflows.analysis import AnalysisWorkflow, log_alert
from core.workflows.bulk_analysis import BulkWorkflow
from features.analysis.application.analyses import Analyses
from features.analysis.application.anonymous import AnonymousAnalyses
from features.analysis.application.ports import CompletionProvider
from features.analysis.application.profile_reader import ProfileReader
from features.analysis.application.quotes import Quotes, RefundTerms
from features.analysis.application.run_metrics import RunMetrics
from features.analysis.application.save_result import SaveResult
from features.analysis.application.start_analysis import StartAnalysis
from features.analysis.application.start_bulk import StartBulk
from features.analysis.application.steps import AnalysisSteps
from features.analysis.controllers.analyses import AnalysesController
from features.analysis.controllers.anonymous import AnonymousController
from features.analysis.controllers.bulk import BulkController
from features.analysis.domain.prompting.prompts import FORMS
from features.analysis.domain.requests import ANONYMOUS_KIND, BULK_KIND
from features.operations.domain.retention import NO_TIME, RetentionRule
from features.runs.application.estimates import Estimates
from features.runs.domain.kinds import ResultLink, RunKind
from features.runs.domain.refunds import REFUND_POLICY
from infrastructure.database.analysis.analyses import PostgresAnalyses
from infrastructure.database.analysis.anonymous import PostgresAnonymousResults
from infrastructure.database.analysis.bulk_items import PostgresBulkItems
from infrastructure.database.analysis.prices import PostgresPrices
from infrastructure.database.analysis.quotas import PostgresAnalysisQuotas
from infrastructure.database.analysis.run_starter import PostgresAnalysisRuns
from infrastructure.database.business.profile_lookup import PostgresBusinesses
from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import AnalysisMetrics
from infrastructure.database.leads.leads import PostgresAnalysisResults
from infrastructure.database.runs.run_queries import PostgresMeasurements
from infrastructure.database.runs.runs import PostgresRuns
from shared.clock import utc_now

REFUND_TERMS = msgspec.convert(REFUND_POLICY, RefundTerms, from_attributes=True)
RESULT = ResultLink(template="/v1/analyses/{run_id}")
RUN_KINDS = (
    RunKind(name="light_analysis", result_link=RESULT, expected_s=12.0),
    RunKind(name="deep_analysis", result_link=RESULT, expected_s=30.0),
    RunKind(name="xray_analysis", result_link=RESULT, expected_s=35.0),
    RunKind(name=ANONYMOUS_KIND),
    RunKind(name=BULK_KIND, result_link=ResultLink(template="/v1/analyses/bulk/{run_id}", is_early=True)),
)


def _api(resources: Resources) -> ApiParts:
    database, session = resources.database, resources.database.admin("analysis starts")
    runs = PostgresAnalysisRuns(session, PostgresRuns(session), PostgresBulkItems(session))
    prices, quotas = PostgresPrices(session), PostgresAnalysisQuotas(database)
    durations = Estimates(PostgresMeasurements(database.admin("run estimates")), resources.run_kinds)
    return ApiParts(
        dependencies={
            "analysis_starts": StartAnalysis(runs, prices),
            "quotes": Quotes(quotas, prices, quotas, durations, REFUND_TERMS, utc_now),
            "bulk_starts": StartBulk(runs, quotas, prices, quotas),
            "anonymous_analyses": AnonymousAnalyses(PostgresAnonymousResults(database)),
            "analyses": Analyses(PostgresAnalyses(database)),
        }
    )


def _worker(resources: Resources) -> WorkerParts:
    providers = resources.providers
    result = save_result(resources.database)
    return WorkerParts(workflows=workflows(resources, providers.profiles, providers.gateway, result))


def save_result(database: Database) -> SaveResult:
    return SaveResult(PostgresAnalysisResults(database.admin("leads")), PostgresAnonymousResults(database))


def workflows(
    resources: Resources, profiles: ProfileReader, completions: CompletionProvider, result: SaveResult
) -> tuple[Workflow, ...]:
    session = resources.database.admin("runs")
    runs = PostgresRuns(session)
    steps = AnalysisSteps(profiles, completions, PostgresBusinesses(session))
    metrics = RunMetrics(runs, AnalysisMetrics(resources.costs.points), log_alert)
    analysis = AnalysisWorkflow(steps, result, metrics)
    bulk = BulkWorkflow(runs, PostgresBulkItems(session), PostgresPrices(session), session.transaction)
    return (
        *(Workflow(f"{analysis_type}_analysis", analysis.run) for analysis_type in FORMS),
        Workflow(ANONYMOUS_KIND, analysis.run),
        Workflow(BULK_KIND, bulk.run),
    )


ANALYSIS = Slice(
    name="analysis",
    controllers=(AnalysesController, BulkController, AnonymousController),
    run_kinds=RUN_KINDS,
    # A bulk run only waits for its runs, so a worker can hold many of them and poll for them less often.
    queues=(Queue(name="bulk", poll_interval_s=0.5, worker_concurrency=50),),
    retention={
        "daily-cleanup": (RetentionRule("public.analyses", timedelta(days=30)),),
        "cache-expiry": (
            RetentionRule("public.completion_cache", NO_TIME),
            RetentionRule("public.anonymous_analyses", NO_TIME),
        ),
    },
    api=_api,
    worker=_worker,
)
