"""Composition of all use cases into one ``Application``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.api.health import Health
from core.settings.settings import Settings
from core.wiring.analysis import AnalysisUseCases, analysis_use_cases
from core.wiring.billing import BillingUseCases, billing_on
from core.wiring.bootstrap import Runtime
from core.wiring.health_checks import engine_probe, identity_probes, payment_probe, probes, provider_probes
from core.wiring.identity import invitation_mail, signing_keys
from core.wiring.inbox import StripeEventInbox, stripe_event_inbox
from core.wiring.operations import OperationsUseCases, operations_on
from core.wiring.providers import utc_now
from core.wiring.resources import Resources, open_foundation
from core.wiring.runs import RunUseCases, open_runs
from core.wiring.webhooks import WebhookUseCases, notices_of
from features.analysis.application.analyses import Analyses
from features.analysis.application.profile_reader import ProfileReader
from features.auth.application.accounts import Accounts, CurrentUser
from features.auth.application.api_keys import ApiKeys
from features.auth.application.authentication import Authenticator
from features.auth.application.invitations import Invitations
from features.auth.application.members import Members
from features.auth.application.ports import InvitationMail
from features.business.application.profiles import BusinessProfiles
from features.costs.application.ports import CallLog
from features.costs.application.reports import CostReports
from features.costs.application.run_costs import RunCosts
from features.costs.domain.prices import PriceBook
from features.credits.application.adjustments import Adjustments
from features.credits.application.balances import Balances
from features.credits.application.grants import Grants
from features.credits.application.holds import Holds
from features.credits.application.maintenance import CreditMaintenance
from features.credits.application.statements import Statements
from features.leads.application.leads import Leads
from infrastructure.ai.gateway import Gateway
from infrastructure.database.analysis.analyses import PostgresAnalyses
from infrastructure.database.auth.accounts import (
    PostgresAccounts,
    PostgresMembers,
    PostgresMemberships,
    PostgresSignUps,
)
from infrastructure.database.auth.api_keys import PostgresApiKeyLookup, PostgresApiKeys
from infrastructure.database.auth.invitations import PostgresInvitations
from infrastructure.database.business.profiles import PostgresProfiles
from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import PostgresMetrics
from infrastructure.database.costs.reports import PostgresCostFigures, PostgresRunLedger
from infrastructure.database.credits.ledger import PostgresCreditReader, PostgresLedger
from infrastructure.database.health_checks import DatabaseHealthChecks
from infrastructure.database.http.idempotency_keys import PostgresIdempotencyKeys
from infrastructure.database.http.rate_limits import PostgresLimits, PostgresWindows
from infrastructure.database.http.request_log import PostgresRequestLog
from infrastructure.database.leads.leads import PostgresLeads
from infrastructure.identity.keys import Keys
from infrastructure.identity.verifier import JwtVerifier
from infrastructure.rate_limits.windows import MemoryWindows, WindowStore
from shared.middleware.idempotency import Idempotency
from shared.middleware.rate_limits import RateLimits
from shared.middleware.request_log import Record

CENT_NANODOLLARS = 10_000_000


@dataclass(frozen=True, slots=True)
class Application:
    """Every use case and resource that an entry point may call."""

    foundation: Resources
    settings: Settings
    authenticator: Authenticator
    rate_limits: RateLimits
    poll_limits: RateLimits  # for polls without a change; counted per process
    idempotency: Idempotency
    record_request: Record
    me: CurrentUser
    accounts: Accounts
    members: Members
    invitations: Invitations
    api_keys: ApiKeys
    balances: Balances
    statements: Statements
    holds: Holds
    grants: Grants
    adjustments: Adjustments
    upkeep: CreditMaintenance
    business_profiles: BusinessProfiles
    leads: Leads
    analyses: Analyses
    price_book: PriceBook
    call_log: CallLog
    data_points: PostgresMetrics
    run_costs: RunCosts
    cost_reports: CostReports
    runs: RunUseCases
    gateway: Gateway
    profiles: ProfileReader
    beginnings: AnalysisUseCases
    billing: BillingUseCases
    webhooks: StripeEventInbox
    notices: WebhookUseCases
    operations: OperationsUseCases
    health: Health


@asynccontextmanager
async def build(place: Runtime) -> AsyncGenerator[Application]:
    async with (
        signing_keys(place.settings) as keys,
        open_foundation(place) as foundation,
        invitation_mail(place, foundation.simulators) as mail,
        open_runs(place, foundation.addresses, foundation.database) as runs,
    ):
        database = foundation.database
        beginnings = analysis_use_cases(database, runs.estimates)
        traffic = Traffic(
            key_ring=PostgresApiKeyLookup(database),
            attempts=PostgresIdempotencyKeys(database),
            requests=PostgresRequestLog(database),
            windows=_windows(place.settings, database),
        )
        try:
            yield _application(foundation, keys, mail, traffic, beginnings, runs)
        finally:
            await traffic.close()


@dataclass(frozen=True, slots=True)
class Traffic:
    """Stores that write behind the requests. ``close`` flushes what they have not written yet."""

    key_ring: PostgresApiKeyLookup
    attempts: PostgresIdempotencyKeys
    requests: PostgresRequestLog
    windows: WindowStore

    async def close(self) -> None:
        for part in (self.key_ring, self.requests, self.windows):
            await part.close()


def _windows(settings: Settings, database: Database) -> WindowStore:
    return MemoryWindows() if settings.rate_limit_store == "memory" else PostgresWindows(database)


def _application(
    foundation: Resources,
    keys: Keys,
    mail: InvitationMail,
    traffic: Traffic,
    beginnings: AnalysisUseCases,
    runs: RunUseCases,
) -> Application:
    place, database = foundation.place, foundation.database
    books, providers = foundation.books, foundation.providers
    settings = place.settings
    identity = settings.identity
    verifier = JwtVerifier(
        keys, algorithm=identity.algorithm, issuer=identity.issuer, audience=identity.audience
    )
    memberships = PostgresMemberships(database)
    accounts = PostgresAccounts(database)
    members = PostgresMembers(database)
    invitations = PostgresInvitations(database)
    api_keys = PostgresApiKeys(database)
    reader = PostgresCreditReader(database)
    ledger = PostgresLedger(database.admin("credit ledger"))
    limits = PostgresLimits(database)
    return Application(
        foundation=foundation,
        settings=settings,
        authenticator=Authenticator(
            verifier,
            PostgresSignUps(database),
            traffic.key_ring,
            memberships,
            settings.signup_bonus_credits,
            utc_now,
        ),
        rate_limits=RateLimits(limits, traffic.windows),
        poll_limits=RateLimits(limits, MemoryWindows()),
        idempotency=Idempotency(traffic.attempts),
        record_request=traffic.requests.record,
        me=CurrentUser(memberships, accounts),
        accounts=Accounts(accounts),
        members=Members(members, invitations, api_keys),
        invitations=Invitations(invitations, members, accounts, mail, settings.frontend_url, utc_now),
        api_keys=ApiKeys(api_keys, members, utc_now),
        balances=Balances(reader),
        statements=Statements(reader),
        holds=Holds(ledger),
        grants=Grants(ledger),
        adjustments=Adjustments(ledger),
        upkeep=CreditMaintenance(ledger),
        business_profiles=BusinessProfiles(PostgresProfiles(database)),
        leads=Leads(PostgresLeads(database)),
        analyses=Analyses(PostgresAnalyses(database)),
        price_book=books.prices,
        call_log=books.calls,
        data_points=books.points,
        run_costs=RunCosts(PostgresRunLedger(database), settings.credit_price_cents * CENT_NANODOLLARS),
        cost_reports=CostReports(PostgresCostFigures(database), utc_now),
        runs=runs,
        gateway=providers.gateway,
        profiles=providers.profiles,
        beginnings=beginnings,
        billing=billing_on(foundation),
        webhooks=stripe_event_inbox(foundation),
        notices=notices_of(settings, database),
        operations=operations_on(database),
        health=_health(foundation, keys, mail, traffic),
    )


def _health(foundation: Resources, keys: Keys, mail: InvitationMail, traffic: Traffic) -> Health:
    place, providers = foundation.place, foundation.providers
    settings, database = place.settings, DatabaseHealthChecks(foundation.database)
    return Health(
        settings.environment,
        {
            **probes(place, database, traffic.windows, providers.objects),
            **engine_probe(settings, database, foundation.engine),
            **provider_probes(settings, providers.gateway),
            **payment_probe(settings, foundation.payments.api),
            **identity_probes(settings, keys, mail),
        },
        essential=frozenset({"database", "migrations", "role_separation"}),
    )
