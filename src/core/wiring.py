"""The composition root: the one place that knows every class. Read it top to bottom."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from core.health import Health, Mode, Probe, ProbeFailed
from core.settings import PROVIDERS, SECRETS, Lookup, Settings, SettingsRefused, read_settings
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
from features.credits.application.balances import Balances
from features.credits.application.grants import Grants
from features.credits.application.holds import Holds
from features.credits.application.statements import Statements
from features.credits.application.upkeep import Upkeep
from infrastructure.cache.object_store import probe_bucket, probe_folder
from infrastructure.database.accounts import (
    PostgresAccounts,
    PostgresMembers,
    PostgresSignUps,
    PostgresStandings,
)
from infrastructure.database.api_keys import PostgresApiKeys, PostgresKeyRing
from infrastructure.database.business import PostgresProfiles
from infrastructure.database.credits import PostgresCreditReader, PostgresLedger
from infrastructure.database.embedded import embedded_postgres
from infrastructure.database.invitations import PostgresInvitations
from infrastructure.database.migrate import migrate
from infrastructure.database.probes import DatabaseProbes
from infrastructure.database.sessions import Database, connect
from infrastructure.database.traffic import (
    PostgresAttempts,
    PostgresLimits,
    PostgresRequestLog,
    PostgresWindows,
)
from infrastructure.database.urls import ADMIN_ROLE, USER_ROLE, role_url
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.keys import FixedKey, KeyInvalid, Keys, load_pem
from infrastructure.identity.supabase_mail import NoInvitationMail, SupabaseInvitationMail, SupabaseProject
from infrastructure.identity.tokens import LocalIssuer
from infrastructure.identity.verifier import JwtVerifier
from infrastructure.limits.memory import MemoryWindows
from infrastructure.limits.redis_windows import RedisWindows
from infrastructure.limits.store import Store
from infrastructure.monitoring.logs import configure_logs
from infrastructure.secrets.aws import AwsSecrets, NoRegion
from infrastructure.simulators.app import OUTBOX
from infrastructure.simulators.process import serve_simulators
from infrastructure.simulators.supabase import SERVICE_ROLE_KEY
from infrastructure.simulators.supervisor import Simulators
from shared.errors import Unavailable
from shared.middleware.analytics import Record
from shared.middleware.idempotency import Idempotency
from shared.middleware.rate_limits import RateLimits

DATABASE_NAME = "oslira"


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where this process runs: its settings, and where they came from."""

    settings: Settings
    lookup: Lookup
    secrets: AwsSecrets | None


@dataclass(frozen=True, slots=True)
class Application:
    """Everything an entry point may call."""

    settings: Settings
    door: Door
    rate_limits: RateLimits
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
    upkeep: Upkeep
    business_profiles: BusinessProfiles
    health: Health


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """Read the settings. Raises SettingsRefused with the list of what to set."""
    prefix = environ.get("OSLIRA_SECRETS_PREFIX", "")
    try:
        secrets = AwsSecrets(environ, prefix=prefix, names=SECRETS) if prefix else None
    except NoRegion:
        wrong = "AWS_DEFAULT_REGION: OSLIRA_SECRETS_PREFIX asks for Secrets Manager, but of which region?"
        raise SettingsRefused(environ.get("OSLIRA_ENVIRONMENT", "local"), [wrong]) from None
    lookup = secrets.lookup if secrets else environ.get
    return Surroundings(settings=read_settings(lookup), lookup=lookup, secrets=secrets)


def start_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    configure_logs(as_json=not settings.is_local, level=level)


def local_issuer(settings: Settings) -> LocalIssuer:
    identity = settings.identity
    return LocalIssuer(settings.data_dir / "identity", issuer=identity.issuer, audience=identity.audience)


async def run_simulators(settings: Settings, port: int) -> None:
    """Serve the simulated providers until told to stop."""
    await serve_simulators(settings.data_dir, local_issuer(settings), port=port, until_stdin_ends=False)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The database's three addresses. ``owner`` is empty where only the two roles' are known."""

    owner: str
    user: str
    admin: str


def _configured_addresses(settings: Settings) -> Addresses:
    owner = settings.database_url
    return Addresses(
        owner=owner,
        user=settings.database_user_url or role_url(owner, USER_ROLE),
        admin=settings.database_admin_url or role_url(owner, ADMIN_ROLE),
    )


@asynccontextmanager
async def database_addresses(settings: Settings) -> AsyncGenerator[Addresses]:
    """The configured database, or one of our own that runs as long as somebody uses it."""
    if not settings.embedded_database:
        yield _configured_addresses(settings)
        return
    async with embedded_postgres(settings.data_dir / "postgres", DATABASE_NAME) as server:
        yield Addresses(
            owner=server.url(DATABASE_NAME),
            user=server.url(DATABASE_NAME, USER_ROLE),
            admin=server.url(DATABASE_NAME, ADMIN_ROLE),
        )


async def apply_migrations(settings: Settings, addresses: Addresses) -> list[str]:
    return await migrate(addresses.owner, set_passwords=not settings.database_user_url)


@asynccontextmanager
async def build(place: Surroundings) -> AsyncGenerator[Application]:
    settings = place.settings
    async with _signing_keys(settings) as keys, database_addresses(settings) as addresses:
        if settings.is_local and addresses.owner:
            await apply_migrations(settings, addresses)
        async with _database(place, addresses) as database, _invitation_mail(place) as mail:
            key_ring = PostgresKeyRing(database)
            requests = PostgresRequestLog(database)
            windows = _windows(place, database)
            try:
                yield _application(place, database, keys, mail, key_ring, requests, windows)
            finally:
                await windows.close()
                await key_ring.close()
                await requests.close()


@asynccontextmanager
async def _database(place: Surroundings, addresses: Addresses) -> AsyncGenerator[Database]:
    async def current() -> Addresses:
        """Read anew for every connection: a secret may have been rotated."""
        if place.secrets is None or place.settings.embedded_database:
            return addresses
        return _configured_addresses(await asyncio.to_thread(read_settings, place.lookup))

    async def user_url() -> str:
        return (await current()).user

    async def admin_url() -> str:
        return (await current()).admin

    async with connect(
        user_url=user_url,
        admin_url=admin_url,
        pool_size=place.settings.database_pool_size,
        statement_cache=place.settings.database_pooler == "session",
    ) as database:
        yield database


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


@asynccontextmanager
async def _signing_keys(settings: Settings) -> AsyncGenerator[Keys]:
    """From the one source that is configured, or of the issuer on this machine."""
    identity = settings.identity
    if identity.algorithm == "HS256":
        yield FixedKey(identity.secret.encode())
        return
    if identity.jwks_url:
        keys = JwksKeys(identity.jwks_url, identity.algorithm)
        try:
            yield keys
        finally:
            await keys.close()
        return
    try:
        key = load_pem(identity.public_key or local_issuer(settings).public_key, identity.algorithm)
    except KeyInvalid:
        kinds = {"ES256": "an ES256 (P-256) key", "RS256": "an RS256 key of 2048 bits or more"}
        wrong = f"OSLIRA_JWT_PUBLIC_KEY is not the public half of {kinds[identity.algorithm]} in PEM."
        raise SettingsRefused(settings.environment, [wrong]) from None
    yield FixedKey(key)


@asynccontextmanager
async def _invitation_mail(place: Surroundings) -> AsyncGenerator[InvitationMail]:
    """Supabase's; on a laptop without one a simulator's, which starts at the first invitation."""
    identity = place.settings.identity
    simulators = Simulators((str(place.settings.data_dir), identity.issuer, identity.audience))

    async def real() -> SupabaseProject:
        """Read anew for every invitation: the key may have been rotated."""
        current = identity
        if place.secrets is not None:
            current = (await asyncio.to_thread(read_settings, place.lookup)).identity
        return SupabaseProject(url=current.supabase_url, service_role_key=current.service_role_key)

    async def simulated() -> SupabaseProject:
        return SupabaseProject(url=await simulators.address(), service_role_key=SERVICE_ROLE_KEY)

    if not identity.supabase_url and not place.settings.is_local:
        yield NoInvitationMail()
        return
    mail = SupabaseInvitationMail(real if identity.supabase_url else simulated)
    try:
        yield mail
    finally:
        await mail.close()
        await simulators.close()


def _application(
    place: Surroundings,
    database: Database,
    keys: Keys,
    mail: InvitationMail,
    key_ring: PostgresKeyRing,
    requests: PostgresRequestLog,
    windows: Store,
) -> Application:
    settings = place.settings
    identity = settings.identity
    verifier = JwtVerifier(
        keys, algorithm=identity.algorithm, issuer=identity.issuer, audience=identity.audience
    )
    standings = PostgresStandings(database)
    accounts = PostgresAccounts(database)
    members = PostgresMembers(database)
    callers = Callers(verifier, PostgresSignUps(database), key_ring, settings.signup_bonus_credits, utc_now)
    reader = PostgresCreditReader(database)
    ledger = PostgresLedger(database.admin("credit ledger"))
    return Application(
        settings=settings,
        door=Door(callers, Access(standings, utc_now)),
        rate_limits=RateLimits(PostgresLimits(database), windows),
        idempotency=Idempotency(PostgresAttempts(database)),
        record_request=requests.record,
        me=Me(standings, accounts),
        accounts=Accounts(accounts),
        members=Members(members),
        invitations=Invitations(
            PostgresInvitations(database), members, accounts, mail, settings.frontend_url, utc_now
        ),
        api_keys=ApiKeys(PostgresApiKeys(database), utc_now),
        balances=Balances(reader),
        statements=Statements(reader),
        holds=Holds(ledger),
        grants=Grants(ledger),
        upkeep=Upkeep(ledger),
        business_profiles=BusinessProfiles(PostgresProfiles(database)),
        health=Health(
            settings.environment,
            {
                **_probes(place, DatabaseProbes(database), windows),
                **_identity_probes(settings, keys, mail),
            },
            essential=frozenset({"database", "migrations", "role_separation"}),
        ),
    )


def _probes(place: Surroundings, database: DatabaseProbes, windows: Store) -> dict[str, tuple[Mode, Probe]]:
    settings = place.settings
    database_mode: Mode = "local" if settings.embedded_database else "real"
    store_modes: dict[str, Mode] = {"postgres": database_mode, "memory": "local"}
    bucket = settings.object_store_bucket
    probes: dict[str, tuple[Mode, Probe]] = {
        "database": (database_mode, database.version),
        "migrations": (database_mode, partial(_migrations, database)),
        "role_separation": (database_mode, partial(_roles, database)),
        "rate_limits": (store_modes.get(settings.rate_limit_store, "real"), partial(_rate_limits, windows)),
        "object_store": ("real", partial(probe_bucket, bucket))
        if bucket
        else ("local", partial(probe_folder, settings.data_dir / "objects")),
        "secrets": ("real" if place.secrets else "local", partial(_secrets, place.secrets)),
    }
    for provider, key in PROVIDERS.items():
        real = provider in settings.real_providers
        probes[provider] = ("real" if real else "simulated", partial(_provider, key, real))
    return probes


def _identity_probes(settings: Settings, keys: Keys, mail: InvitationMail) -> dict[str, tuple[Mode, Probe]]:
    identity = settings.identity
    simulated = settings.is_local and not identity.supabase_url
    return {
        "identity": (
            "local" if identity.signs_locally else "real",
            partial(_signing, identity.algorithm, keys),
        ),
        "supabase": ("simulated" if simulated else "real", partial(_invitations, mail, simulated)),
    }


async def _signing(algorithm: str, keys: Keys) -> str:
    if not isinstance(keys, JwksKeys):
        return f"{algorithm}, one key"
    count = await keys.count()
    if keys.failure:
        serving = f"the last {count} known serve" if count else "no token can be checked"
        raise ProbeFailed(f"signing keys not loaded: {keys.failure}; {serving}")
    return f"{algorithm}, {count} from the issuer"


async def _invitations(mail: InvitationMail, simulated: bool) -> str:  # noqa: FBT001  bound by partial
    if isinstance(mail, NoInvitationMail):
        raise ProbeFailed("no invitations: set SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY")
    if isinstance(mail, SupabaseInvitationMail) and mail.failure:
        raise ProbeFailed(f"the last invitation was not sent: {mail.failure}")
    return f"invitations go to {OUTBOX}; set SUPABASE_URL for the real one" if simulated else "key configured"


async def _migrations(database: DatabaseProbes) -> str:
    applied, waiting, changed = await database.migrations()
    if waiting or changed:
        raise ProbeFailed(
            f"waiting: {', '.join(waiting) or 'none'}; changed since they were applied:"
            f" {', '.join(changed) or 'none'}. Run oslira migrate"
        )
    return f"{applied} applied"


async def _roles(database: DatabaseProbes) -> str:
    if not await database.roles_are_separate():
        raise ProbeFailed("app_user must be subject to row level security and app_admin must not")
    return "app_user obeys row level security"


async def _rate_limits(windows: Store) -> str:
    try:
        return await windows.state()
    except Unavailable as error:
        raise ProbeFailed(str(error)) from error


async def _secrets(secrets: AwsSecrets | None) -> str:
    if secrets and secrets.failure:
        raise ProbeFailed(f"AWS Secrets Manager: {secrets.failure}; the last known values serve")
    return "AWS Secrets Manager" if secrets else "environment"


async def _provider(key: str, real: bool) -> str:  # noqa: FBT001  bound by partial
    return "key configured" if real else f"set {key} for the real one"
