"""Health checks of the bindings, with the texts that the readiness response shows."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from core.api.health import HealthCheckFailed, Mode
from core.engine.workflow import EngineState
from core.settings.providers import PROVIDERS
from shared.errors import Unavailable

# U-13: above these values the engine's health check fails, so that an operator is alerted.
QUEUED_MAX = 100
WAIT_S_MAX = 180.0
EXECUTOR_LENGTH = 8  # the first characters of a name are enough to distinguish executors


class HasFailure(Protocol):
    """``failure`` is the reason why the last call failed; None if it succeeded."""

    @property
    def failure(self) -> str | None: ...


class KeySet(HasFailure, Protocol):
    async def count(self) -> int: ...


class Backlog(Protocol):
    @property
    def executors(self) -> list[str]: ...
    @property
    def queued_count(self) -> int: ...
    @property
    def oldest_wait_s(self) -> float: ...


class DatabaseState(Protocol):
    async def migrations(self) -> tuple[int, list[str], list[str]]: ...
    async def work(self) -> Backlog: ...
    async def roles_are_separate(self) -> bool: ...


class RateLimitStore(Protocol):
    async def state(self) -> str: ...


class ObjectStore(Protocol):
    async def probe(self) -> str: ...


class ModelGateway(Protocol):
    def breakers(self) -> Mapping[str, Any]: ...
    def retirements(self) -> Iterable[tuple[str, Any, str, Any]]: ...


async def check_migrations(database: DatabaseState) -> str:
    applied, pending, changed = await database.migrations()
    if pending or changed:
        raise HealthCheckFailed(
            f"pending: {', '.join(pending) or 'none'}; changed since they were applied:"
            f" {', '.join(changed) or 'none'}. Run oslira migrate"
        )
    return f"{applied} applied"


async def check_roles(database: DatabaseState) -> str:
    if not await database.roles_are_separate():
        raise HealthCheckFailed("app_user must be subject to row level security and app_admin must not")
    return "app_user is subject to row level security"


async def check_engine(database: DatabaseState, state: EngineState) -> str:
    backlog = await database.work()
    found = f"{_workers(backlog.executors, state)}; {backlog.queued_count} queued"
    if backlog.queued_count:
        found += f", the oldest for {backlog.oldest_wait_s:.0f} s"
    if not backlog.executors or backlog.queued_count > QUEUED_MAX or backlog.oldest_wait_s > WAIT_S_MAX:
        raise HealthCheckFailed(found)
    return found


def _workers(executors: list[str], state: EngineState) -> str:
    names = ", ".join(executor[:EXECUTOR_LENGTH] for executor in executors)
    workers = f"workers: {names}" if executors else "no worker: start oslira worker"
    if state.executor:
        return f"{workers}; this process is {state.executor[:EXECUTOR_LENGTH]}"
    return f"{workers}; the worker of this process is starting" if state.is_wanted else workers


async def check_rate_limits(store: RateLimitStore) -> str:
    try:
        return await store.state()
    except Unavailable as error:
        raise HealthCheckFailed(str(error)) from error


async def check_object_store(store: ObjectStore) -> str:
    try:
        return await store.probe()
    except Unavailable as error:
        raise HealthCheckFailed(str(error)) from error


async def check_secrets(secrets: HasFailure | None) -> str:
    if secrets is not None and secrets.failure:
        raise HealthCheckFailed(f"AWS Secrets Manager: {secrets.failure}; the cached values are used")
    return "AWS Secrets Manager" if secrets is not None else "environment"


async def check_sentry(dsn: str) -> str:
    return "DSN configured" if dsn else "errors are only logged; set SENTRY_DSN"


async def check_plaintext_hosts(hosts: tuple[str, ...]) -> str:
    return f"may be reached without encryption: {', '.join(hosts)}"


async def one_signing_key(algorithm: str) -> str:
    return f"{algorithm}, one key"


async def check_signing_keys(algorithm: str, keys: KeySet) -> str:
    count = await keys.count()
    if keys.failure:
        effect = f"the {count} cached keys are used" if count else "no token can be verified"
        raise HealthCheckFailed(f"signing keys not loaded: {keys.failure}; {effect}")
    return f"{algorithm}, {count} from the issuer"


async def check_invitations(mail: HasFailure | None, outbox: str, *, is_simulated: bool) -> str:
    if mail is None:
        raise HealthCheckFailed("no invitations: set SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY")
    if mail.failure:
        raise HealthCheckFailed(f"the last invitation was not sent: {mail.failure}")
    if is_simulated:
        return f"invitations are written to {outbox}; set SUPABASE_URL to send them"
    return "key configured"


async def check_models(gateway: ModelGateway, provider: str, mode: Mode) -> str:
    """Reports the state of the circuit breakers instead of calling the provider, since calls cost money."""
    breakers = {
        name: breaker for name, breaker in gateway.breakers().items() if name.startswith(f"{provider}/")
    }
    open_names = [name.partition("/")[2] for name, breaker in breakers.items() if breaker.state != "closed"]
    if open_names:
        raise HealthCheckFailed(f"circuit breaker open: {', '.join(open_names)}; fallbacks are used")
    retiring = [
        f"{model} retires on {day}, its successor is {successor}"
        for model, day, successor, _ in gateway.retirements()
        if f"{provider}/{model}" in breakers
    ]
    return "; ".join([await check_provider(provider, mode), *retiring])


async def check_stripe(client: HasFailure, mode: Mode) -> str:
    """Reports the result of the last call instead of calling Stripe."""
    if mode == "absent":
        return "purchases are disabled; set STRIPE_SECRET_KEY"
    if client.failure:
        raise HealthCheckFailed(f"the last call failed: {client.failure}")
    return await check_provider("stripe", mode)


async def check_provider(provider: str, mode: Mode) -> str:
    key = PROVIDERS[provider]
    match mode:
        case "real":
            return "key configured"
        case "absent":
            return f"set {key} to use it as the fallback"
        case _:
            return f"set {key} to use the real provider"
