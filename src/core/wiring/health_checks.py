"""Health checks of every binding, with the texts that the readiness response shows."""

from functools import partial

from core.api.health import HealthCheckFailed, Mode, Probe
from core.engine.workflow import EngineState
from core.settings.providers import MODELS, PAYMENTS, PROVIDERS
from core.settings.settings import Settings
from core.wiring.bootstrap import Runtime
from features.auth.application.ports import InvitationMail
from infrastructure.ai.gateway import Gateway
from infrastructure.database.health_checks import DatabaseHealthChecks
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.keys import Keys
from infrastructure.identity.supabase_mail import NoInvitationMail, SupabaseInvitationMail
from infrastructure.object_store.port import ObjectStore
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.rate_limits.windows import WindowStore
from infrastructure.secrets.aws import AwsSecrets
from shared.errors import Unavailable
from simulators.app import OUTBOX

# U-13: above these values the engine's health check fails, so that an operator is alerted.
QUEUED_MAX = 100
WAIT_S_MAX = 180.0
EXECUTOR_LENGTH = 8  # the first characters of a name are enough to distinguish executors


def probes(
    place: Runtime, database: DatabaseHealthChecks, windows: WindowStore, objects: ObjectStore
) -> dict[str, tuple[Mode, Probe]]:
    settings = place.settings
    database_mode: Mode = "local" if settings.embedded_database else "real"
    store_modes: dict[str, Mode] = {"postgres": database_mode, "memory": "local"}
    bucket = settings.object_store_bucket
    plaintext = settings.plaintext_hosts
    return {
        "database": (database_mode, database.version),
        "migrations": (database_mode, partial(_migrations, database)),
        "role_separation": (database_mode, partial(_roles, database)),
        "rate_limits": (store_modes.get(settings.rate_limit_store, "real"), partial(_rate_limits, windows)),
        "object_store": ("real" if bucket else "local", partial(_objects, objects)),
        "secrets": ("real" if place.secrets else "local", partial(_secrets, place.secrets)),
        "sentry": ("real" if settings.sentry_dsn else "local", partial(_sentry, settings.sentry_dsn)),
        **({"plaintext_hosts": ("real", partial(_plaintext, plaintext))} if plaintext else {}),
    }


def engine_probe(
    settings: Settings, database: DatabaseHealthChecks, state: EngineState
) -> dict[str, tuple[Mode, Probe]]:
    return {
        "engine": ("local" if settings.embedded_database else "real", partial(_engine, database, state)),
    }


def provider_probes(settings: Settings, gateway: Gateway) -> dict[str, tuple[Mode, Probe]]:
    return {
        provider: (
            mode := _mode(settings, provider),
            partial(_models, gateway, provider, key, mode)
            if provider in MODELS
            else partial(_provider, key, mode),
        )
        for provider, key in PROVIDERS.items()
        if provider not in PAYMENTS
    }


def payment_probe(settings: Settings, api: StripeApi) -> dict[str, tuple[Mode, Probe]]:
    mode = _mode(settings, "stripe")
    if mode == "simulated" and settings.environment == "production":
        mode = "absent"
    return {"stripe": (mode, partial(_payments, api, mode))}


def identity_probes(settings: Settings, keys: Keys, mail: InvitationMail) -> dict[str, tuple[Mode, Probe]]:
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
        raise HealthCheckFailed(f"signing keys not loaded: {keys.failure}; {serving}")
    return f"{algorithm}, {count} from the issuer"


async def _invitations(mail: InvitationMail, simulated: bool) -> str:  # noqa: FBT001  bound by partial
    if isinstance(mail, NoInvitationMail):
        raise HealthCheckFailed("no invitations: set SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY")
    if isinstance(mail, SupabaseInvitationMail) and mail.failure:
        raise HealthCheckFailed(f"the last invitation was not sent: {mail.failure}")
    return f"invitations go to {OUTBOX}; set SUPABASE_URL for the real one" if simulated else "key configured"


async def _migrations(database: DatabaseHealthChecks) -> str:
    applied, waiting, changed = await database.migrations()
    if waiting or changed:
        raise HealthCheckFailed(
            f"waiting: {', '.join(waiting) or 'none'}; changed since they were applied:"
            f" {', '.join(changed) or 'none'}. Run oslira migrate"
        )
    return f"{applied} applied"


async def _engine(database: DatabaseHealthChecks, state: EngineState) -> str:
    work = await database.work()
    found = f"{_workers(work.executors, state)}; {work.queued_count} queued"
    if work.queued_count:
        found += f", the oldest for {work.oldest_wait_s:.0f} s"
    if not work.executors or work.queued_count > QUEUED_MAX or work.oldest_wait_s > WAIT_S_MAX:
        raise HealthCheckFailed(found)
    return found


def _workers(executors: list[str], state: EngineState) -> str:
    if not executors:
        names = "nobody works: start oslira worker"
    else:
        names = f"at work: {', '.join(executor[:EXECUTOR_LENGTH] for executor in executors)}"
    if state.executor:
        return f"{names}; this process is {state.executor[:EXECUTOR_LENGTH]}"
    return f"{names}; this process is about to" if state.is_wanted else names


async def _roles(database: DatabaseHealthChecks) -> str:
    if not await database.roles_are_separate():
        raise HealthCheckFailed("app_user must be subject to row level security and app_admin must not")
    return "app_user obeys row level security"


async def _rate_limits(windows: WindowStore) -> str:
    try:
        return await windows.state()
    except Unavailable as error:
        raise HealthCheckFailed(str(error)) from error


async def _objects(store: ObjectStore) -> str:
    try:
        return await store.probe()
    except Unavailable as error:
        raise HealthCheckFailed(str(error)) from error


async def _secrets(secrets: AwsSecrets | None) -> str:
    if secrets and secrets.failure:
        raise HealthCheckFailed(f"AWS Secrets Manager: {secrets.failure}; the last known values serve")
    return "AWS Secrets Manager" if secrets else "environment"


async def _sentry(dsn: str) -> str:
    return "address configured" if dsn else "errors are only logged; set SENTRY_DSN"


async def _plaintext(hosts: tuple[str, ...]) -> str:
    return f"may be reached without encryption: {', '.join(hosts)}"


def _mode(settings: Settings, provider: str) -> Mode:
    if provider in settings.providers.real:
        return "real"
    return "simulated" if provider in settings.providers.simulated else "absent"


async def _models(gateway: Gateway, provider: str, key: str, mode: Mode) -> str:
    """Reports the state of the circuit breakers instead of calling the provider, since calls cost money."""
    queries = {name: view for name, view in gateway.breakers().items() if name.startswith(f"{provider}/")}
    resting = [name.partition("/")[2] for name, view in queries.items() if view.state != "closed"]
    if resting:
        raise HealthCheckFailed(f"{', '.join(resting)} failed too often and rests; others stand in")
    leaving = [
        f"{model} retires on {day}, then {successor} does its work"
        for model, day, successor, _ in gateway.retirements()
        if f"{provider}/{model}" in queries
    ]
    return "; ".join([await _provider(key, mode), *leaving])


async def _payments(api: StripeApi, mode: Mode) -> str:
    """Reports the result of the last call instead of calling Stripe."""
    if mode == "absent":
        return "nothing can be bought; set STRIPE_SECRET_KEY"
    if api.failure:
        raise HealthCheckFailed(f"the last call failed: {api.failure}")
    return await _provider(PROVIDERS["stripe"], mode)


async def _provider(key: str, mode: Mode) -> str:
    match mode:
        case "real":
            return "key configured"
        case "absent":
            return f"set {key} to have it stand in when the other one fails"
        case _:
            return f"set {key} for the real one"
