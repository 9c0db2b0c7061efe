"""Everything put together. Read it top to bottom."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from core.health import Health
from core.settings import Settings, read_settings
from core.wiring.analysis import Beginnings, open_beginnings
from core.wiring.billing import Billing, billing_on
from core.wiring.foundation import Foundation, open_foundation
from core.wiring.identity import invitation_mail, signing_keys
from core.wiring.inbox import Webhooks, webhooks_on
from core.wiring.notices import Notices, notices_of
from core.wiring.operations import Operations, operations_on
from core.wiring.place import Surroundings
from core.wiring.probes import engine_probe, identity_probes, payment_probe, probes, provider_probes
from core.wiring.providers import utc_now
from core.wiring.runs import Runs, open_runs
from features.analysis.application.analyses import Analyses
from features.analysis.application.leads import Leads
from features.analysis.application.profiles import Profiles
from features.auth.application.access import Access
from features.auth.application.accounts import Accounts
from features.auth.application.api_keys import ApiKeys
from features.auth.application.callers import Callers
from features.auth.application.door import Door
from features.auth.application.invitations import Invitations
from features.auth.application.me import Me
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
from features.credits.application.statements import Statements
from features.credits.application.upkeep import Upkeep
from infrastructure.ai.gateway import Gateway
from infrastructure.database.accounts import (
    PostgresAccounts,
    PostgresMembers,
    PostgresSignUps,
    PostgresStandings,
)
from infrastructure.database.analyses import PostgresAnalyses
from infrastructure.database.api_keys import PostgresApiKeys, PostgresKeyRing
from infrastructure.database.attempts import PostgresAttempts
from infrastructure.database.business import PostgresProfiles
from infrastructure.database.cost_reports import PostgresFigures, PostgresRunLedger
from infrastructure.database.credits import PostgresCreditReader, PostgresLedger
from infrastructure.database.data_points import PostgresDataPoints
from infrastructure.database.invitations import PostgresInvitations
from infrastructure.database.leads import PostgresLeads
from infrastructure.database.probes import DatabaseProbes
from infrastructure.database.rate_limits import PostgresLimits, PostgresWindows
from infrastructure.database.requests import PostgresRequestLog
from infrastructure.database.sessions import Database
from infrastructure.identity.keys import Keys
from infrastructure.identity.verifier import JwtVerifier
from infrastructure.limits.memory import MemoryWindows
from infrastructure.limits.redis_windows import RedisWindows
from infrastructure.limits.store import Store
from shared.middleware.analytics import Record
from shared.middleware.idempotency import Idempotency
from shared.middleware.rate_limits import RateLimits

CENT_NANODOLLARS = 10_000_000


@dataclass(frozen=True, slots=True)
class Application:
    """Everything an entry point may call."""

    foundation: Foundation
    settings: Settings
    door: Door
    rate_limits: RateLimits
    poll_limits: RateLimits  # of polls that bring nothing new: each process counts its own
    idempotency: Idempotency
    record_request: Record
    me: Me
    accounts: Accounts
    members: Members
    invitations: Invitations
    api_keys: ApiKeys
    balances: Balances
    statements: Statements
    holds: Holds
    grants: Grants
    adjustments: Adjustments
    upkeep: Upkeep
    business_profiles: BusinessProfiles
    leads: Leads
    analyses: Analyses
    price_book: PriceBook
    call_log: CallLog
    data_points: PostgresDataPoints
    run_costs: RunCosts
    cost_reports: CostReports
    runs: Runs
    gateway: Gateway
    profiles: Profiles
    beginnings: Beginnings
    billing: Billing
    webhooks: Webhooks
    notices: Notices
    operations: Operations
    health: Health


@asynccontextmanager
async def build(place: Surroundings) -> AsyncGenerator[Application]:
    async with (
        signing_keys(place.settings) as keys,
        open_foundation(place) as foundation,
        invitation_mail(place, foundation.simulators) as mail,
        open_runs(place, foundation.addresses, foundation.database) as runs,
        open_beginnings(foundation.database, runs.estimates) as beginnings,
    ):
        database = foundation.database
        traffic = Traffic(
            key_ring=PostgresKeyRing(database),
            attempts=PostgresAttempts(database),
            requests=PostgresRequestLog(database),
            windows=_windows(place, database),
        )
        try:
            yield _application(foundation, keys, mail, traffic, beginnings, runs)
        finally:
            await traffic.close()


@dataclass(frozen=True, slots=True)
class Traffic:
    """What writes beside the requests, and has something left to write when they end."""

    key_ring: PostgresKeyRing
    attempts: PostgresAttempts
    requests: PostgresRequestLog
    windows: Store

    async def close(self) -> None:
        for part in (self.key_ring, self.attempts, self.requests, self.windows):
            await part.close()


def _windows(place: Surroundings, database: Database) -> Store:
    match place.settings.rate_limit_store:
        case "postgres":
            return PostgresWindows(database)
        case "memory":
            return MemoryWindows()
        case address:
            return RedisWindows(partial(_redis_address, place, address))


async def _redis_address(place: Surroundings, address: str) -> str:
    """Read anew for every connection: a secret may have been rotated."""
    if place.secrets is None:
        return address
    return (await asyncio.to_thread(read_settings, place.lookup)).rate_limit_store


def _application(
    foundation: Foundation,
    keys: Keys,
    mail: InvitationMail,
    traffic: Traffic,
    beginnings: Beginnings,
    runs: Runs,
) -> Application:
    place, database = foundation.place, foundation.database
    books, providers = foundation.books, foundation.providers
    settings = place.settings
    identity = settings.identity
    verifier = JwtVerifier(
        keys, algorithm=identity.algorithm, issuer=identity.issuer, audience=identity.audience
    )
    standings = PostgresStandings(database)
    accounts = PostgresAccounts(database)
    members = PostgresMembers(database)
    invitations = PostgresInvitations(database)
    api_keys = PostgresApiKeys(database)
    callers = Callers(
        verifier, PostgresSignUps(database), traffic.key_ring, settings.signup_bonus_credits, utc_now
    )
    reader = PostgresCreditReader(database)
    ledger = PostgresLedger(database.admin("credit ledger"))
    limits = PostgresLimits(database)
    return Application(
        foundation=foundation,
        settings=settings,
        door=Door(callers, Access(standings, utc_now)),
        rate_limits=RateLimits(limits, traffic.windows),
        poll_limits=RateLimits(limits, MemoryWindows()),
        idempotency=Idempotency(traffic.attempts),
        record_request=traffic.requests.record,
        me=Me(standings, accounts),
        accounts=Accounts(accounts),
        members=Members(members, invitations, api_keys),
        invitations=Invitations(invitations, members, accounts, mail, settings.frontend_url, utc_now),
        api_keys=ApiKeys(api_keys, members, utc_now),
        balances=Balances(reader),
        statements=Statements(reader),
        holds=Holds(ledger),
        grants=Grants(ledger),
        adjustments=Adjustments(ledger),
        upkeep=Upkeep(ledger),
        business_profiles=BusinessProfiles(PostgresProfiles(database)),
        leads=Leads(PostgresLeads(database), PostgresAnalyses(database)),
        analyses=Analyses(PostgresAnalyses(database)),
        price_book=books.prices,
        call_log=books.calls,
        data_points=books.points,
        run_costs=RunCosts(PostgresRunLedger(database), settings.credit_price_cents * CENT_NANODOLLARS),
        cost_reports=CostReports(PostgresFigures(database), utc_now),
        runs=runs,
        gateway=providers.gateway,
        profiles=providers.profiles,
        beginnings=beginnings,
        billing=billing_on(foundation),
        webhooks=webhooks_on(foundation),
        notices=notices_of(settings, database),
        operations=operations_on(database),
        health=_health(foundation, keys, mail, traffic),
    )


def _health(foundation: Foundation, keys: Keys, mail: InvitationMail, traffic: Traffic) -> Health:
    place, providers = foundation.place, foundation.providers
    settings, database = place.settings, DatabaseProbes(foundation.database)
    return Health(
        settings.environment,
        {
            **probes(place, database, traffic.windows, providers.objects),
            **engine_probe(settings, database, foundation.engine),
            **provider_probes(settings, providers.gateway),
            **payment_probe(settings, foundation.payments.desk),
            **identity_probes(settings, keys, mail),
        },
        essential=frozenset({"database", "migrations", "role_separation"}),
    )
