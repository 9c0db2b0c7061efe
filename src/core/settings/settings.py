"""All settings in one frozen struct. An empty environment gives a working local system."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

import msgspec

from core.settings.identity import IDENTITY_SECRETS, IdentitySettings, read_identity, unsafe_identity
from core.settings.payments import (
    LOCAL_SECRET,
    SECRETS_VARIABLE,
    read_webhook_secrets,
    unsafe_webhook_secrets,
)
from core.settings.providers import (
    PROVIDER_SECRETS,
    PROVIDERS,
    ProviderSettings,
    read_providers,
    unsafe_providers,
)
from core.settings.sentry import read_sentry_dsn, unsafe_sentry_dsn
from core.settings.transport import is_loopback, read_plaintext_hosts, unsafe_transports
from core.settings.webhooks import (
    OUTGOING_WEBHOOK_SECRETS,
    WebhookSettings,
    read_webhook_settings,
    unsafe_webhook_settings,
)

Environment = Literal["local", "staging", "production"]

_CHECKOUT = Path(__file__).parents[3]
# The project's directory in a checkout, otherwise the current directory.
DATA_DIR = (_CHECKOUT if (_CHECKOUT / "pyproject.toml").exists() else Path.cwd()) / ".data"
TRANSACTION_POOLER_PORT = 6543  # Supabase's
DIGITS_MAX = 18
LOCAL_FRONTEND = "http://127.0.0.1:3000"
# Hosting platforms set these variables. On such a platform an unset OSLIRA_ENVIRONMENT means production.
HOSTS = (
    "KUBERNETES_SERVICE_HOST",
    "FLY_APP_NAME",
    "DYNO",
    "RENDER",
    "K_SERVICE",
    "ECS_CONTAINER_METADATA_URI_V4",
)
UNSTATED_ENVIRONMENT = (
    "OSLIRA_ENVIRONMENT: there is a database address, or a public address to listen on. Set it to local,"
    " staging or production."
)

SECRETS = (
    "DATABASE_URL",
    "OSLIRA_DATABASE_USER_URL",
    "OSLIRA_DATABASE_ADMIN_URL",
    "OSLIRA_OBJECT_STORE_SECRET",
    *PROVIDER_SECRETS,
    SECRETS_VARIABLE,
    "SENTRY_DSN",
    *IDENTITY_SECRETS,
    *OUTGOING_WEBHOOK_SECRETS,
)

Lookup = Callable[[str], str | None]
"""Returns the value of a variable; None or empty if it is not set."""


class InvalidSettings(ValueError):
    """Lists everything that has to be set in one message."""

    def __init__(self, environment: str, errors: list[str]) -> None:
        super().__init__(environment, errors)
        self.errors = errors
        self.environment = environment

    def __str__(self) -> str:
        lines = "\n".join(f"  - {wrong}" for wrong in self.errors)
        return f"These settings do not make a {self.environment} system:\n{lines}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Read once at start. Adapters receive single values, never this object."""

    environment: Environment = "local"
    host: str = "127.0.0.1"
    port: int = 8000
    data_dir: Path = DATA_DIR
    database_url: str = ""
    database_user_url: str = ""
    database_admin_url: str = ""
    database_pool_size: int = 16
    database_pooler: Literal["session", "transaction"] = "session"
    identity: IdentitySettings = IdentitySettings()
    cors_origins: tuple[str, ...] = ()
    frontend_url: str = LOCAL_FRONTEND
    proxy_hops: int = 0
    rate_limit_store: str = "postgres"  # or memory
    plaintext_hosts: tuple[str, ...] = ()  # hosts that a server may reach without encryption
    signup_bonus_credits: int = 25
    body_bytes_max: int = 1_048_576
    client_deadline_s: int = 10
    drain_s: int = 20
    object_store_bucket: str = ""
    object_store_url: str = ""
    object_store_key_id: str = ""
    object_store_secret: str = ""
    secrets_prefix: str = ""
    providers: ProviderSettings = ProviderSettings()
    configured_webhook_secrets: tuple[str, ...] = ()
    sentry_dsn: str = ""
    credit_price_cents: int = 97
    webhooks: WebhookSettings = WebhookSettings()

    def __repr__(self) -> str:
        """Omits addresses, because they contain passwords."""
        return f"Settings(environment={self.environment!r}, port={self.port})"

    @property
    def is_local(self) -> bool:
        return self.environment == "local"

    @property
    def embedded_database(self) -> bool:
        return not (self.database_url or self.database_user_url)

    @property
    def webhook_secrets(self) -> tuple[str, ...]:
        """Stripe's secrets; the simulator's public one if Stripe is simulated in a local environment."""
        is_simulated = self.is_local and "stripe" in self.providers.simulated
        return self.configured_webhook_secrets or ((LOCAL_SECRET,) if is_simulated else ())


def read_settings(lookup: Lookup) -> Settings:
    """Raises InvalidSettings with all errors, not only the first."""
    errors: list[str] = []
    number = partial(_number, lookup, errors)
    environment = _environment(lookup, errors)
    database_url = lookup("DATABASE_URL") or ""
    user_url = lookup("OSLIRA_DATABASE_USER_URL") or ""
    admin_url = lookup("OSLIRA_DATABASE_ADMIN_URL") or ""
    cors_origins = tuple((lookup("OSLIRA_CORS_ORIGINS") or "").replace(",", " ").split())
    settings = Settings(
        environment=environment,
        host=lookup("OSLIRA_HOST") or "127.0.0.1",
        port=number("OSLIRA_PORT", 8000, 0, 65_535),
        data_dir=Path(lookup("OSLIRA_DATA_DIR") or DATA_DIR).expanduser().absolute(),
        database_url=database_url,
        database_user_url=user_url,
        database_admin_url=admin_url,
        database_pool_size=number("OSLIRA_DATABASE_POOL_SIZE", 16, 1, 200),
        database_pooler=_pooler(lookup, (database_url, user_url, admin_url), errors),
        identity=read_identity(lookup, errors),
        cors_origins=cors_origins,
        frontend_url=(lookup("OSLIRA_FRONTEND_URL") or [*cors_origins, LOCAL_FRONTEND][0]).rstrip("/"),
        proxy_hops=number("OSLIRA_PROXY_HOPS", 0, 0, 10),
        rate_limit_store=_rate_limit_store(lookup, errors),
        plaintext_hosts=read_plaintext_hosts(lookup, errors),
        signup_bonus_credits=number("OSLIRA_SIGNUP_BONUS_CREDITS", 25, 0, 1_000_000),
        body_bytes_max=number("OSLIRA_BODY_BYTES_MAX", 1_048_576, 1_024, 2**30),
        client_deadline_s=number("OSLIRA_CLIENT_DEADLINE_SECONDS", 10, 1, 600),
        drain_s=number("OSLIRA_DRAIN_SECONDS", 20, 1, 600),
        object_store_bucket=lookup("OSLIRA_OBJECT_STORE_BUCKET") or "",
        object_store_url=lookup("OSLIRA_OBJECT_STORE_URL") or "",
        object_store_key_id=lookup("OSLIRA_OBJECT_STORE_KEY_ID") or "",
        object_store_secret=lookup("OSLIRA_OBJECT_STORE_SECRET") or "",
        secrets_prefix=lookup("OSLIRA_SECRETS_PREFIX") or "",
        providers=read_providers(lookup, number, errors),
        configured_webhook_secrets=read_webhook_secrets(lookup, errors),
        sentry_dsn=read_sentry_dsn(lookup, errors),
        credit_price_cents=number("OSLIRA_CREDIT_PRICE_CENTS", 97, 0, 100_000),
        webhooks=read_webhook_settings(lookup, errors, is_local=environment == "local"),
    )
    errors += _contradictions(settings)
    if settings.is_local and not lookup("OSLIRA_ENVIRONMENT"):
        errors += _unstated_environment(settings)
    if not settings.is_local:
        errors += _unsafe(settings)
    if errors:
        raise InvalidSettings(environment, errors)
    return settings


def _environment(lookup: Lookup, errors: list[str]) -> Environment:
    value = lookup("OSLIRA_ENVIRONMENT") or ""
    for environment in get_args(Environment):
        if value == environment:
            return environment
    if value:
        errors.append(f"OSLIRA_ENVIRONMENT is {value!r}; use local, staging or production.")
        return "production"
    return "production" if any(lookup(host) for host in HOSTS) else "local"


def _unstated_environment(settings: Settings) -> list[str]:
    """Local settings are unsafe on a server, so a server must state its environment explicitly."""
    if settings.embedded_database and not settings.database_admin_url and is_loopback(settings.host):
        return []
    return [UNSTATED_ENVIRONMENT]


def _number(lookup: Lookup, errors: list[str], name: str, default: int, least: int, most: int) -> int:
    value = lookup(name)
    if not value:
        return default
    is_number = value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX
    if not is_number or not least <= int(value) <= most:
        errors.append(f"{name} is {value!r}; use a whole number from {least} to {most}.")
        return default
    return int(value)


def _pooler(lookup: Lookup, urls: tuple[str, ...], errors: list[str]) -> Literal["session", "transaction"]:
    value = lookup("OSLIRA_DATABASE_POOLER")
    if value not in (None, "", "session", "transaction"):
        errors.append(f"OSLIRA_DATABASE_POOLER is {value!r}; use session or transaction.")
    if value:
        return "transaction" if value == "transaction" else "session"
    return "transaction" if any(_port(url) == TRANSACTION_POOLER_PORT for url in urls) else "session"


def _rate_limit_store(lookup: Lookup, errors: list[str]) -> str:
    value = lookup("OSLIRA_RATE_LIMIT_STORE") or "postgres"
    if value in ("postgres", "memory"):
        return value
    errors.append("OSLIRA_RATE_LIMIT_STORE: use postgres or memory.")
    return "postgres"


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None


def _is_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("postgresql", "postgres")
    except ValueError:
        return False


def _contradictions(settings: Settings) -> list[str]:
    errors: list[str] = []
    if bool(settings.database_user_url) != bool(settings.database_admin_url):
        errors.append("OSLIRA_DATABASE_USER_URL and OSLIRA_DATABASE_ADMIN_URL go together.")
    urls = (settings.database_url, settings.database_user_url, settings.database_admin_url)
    if any(url and not _is_address(url) for url in urls):
        errors.append(
            "A database address is postgresql://user:password@host/name, special characters escaped."
        )
    if bool(settings.object_store_key_id) != bool(settings.object_store_secret):
        errors.append("OSLIRA_OBJECT_STORE_KEY_ID and OSLIRA_OBJECT_STORE_SECRET go together.")
    if settings.object_store_url and not settings.object_store_bucket:
        errors.append("OSLIRA_OBJECT_STORE_URL needs OSLIRA_OBJECT_STORE_BUCKET.")
    return errors


def _unsafe(settings: Settings) -> list[str]:
    """Defaults that are convenient on a laptop and a vulnerability on a server."""
    errors: list[str] = []
    if settings.embedded_database:
        errors.append("DATABASE_URL: the embedded server has no backups and no second machine.")
    errors += _unsafe_transports(settings)
    errors += unsafe_identity(settings.identity)
    errors += _repeated_characters(settings)
    if settings.environment == "production":
        errors += unsafe_providers(settings.providers)
    errors += unsafe_webhook_secrets(
        settings.configured_webhook_secrets, is_stripe_real="stripe" in settings.providers.real
    )
    errors += unsafe_sentry_dsn(settings.sentry_dsn)
    errors += unsafe_webhook_settings(settings.webhooks)
    if settings.cors_origins and not settings.frontend_url.startswith("https://"):
        errors.append("OSLIRA_FRONTEND_URL: use an https:// address; links in invitations lead there.")
    if not settings.cors_origins:
        errors.append("OSLIRA_CORS_ORIGINS: set it to the origins of the frontend.")
    if settings.rate_limit_store == "memory":
        errors.append("OSLIRA_RATE_LIMIT_STORE: with memory each process would grant the whole limit again.")
    errors += [
        f"OSLIRA_CORS_ORIGINS: {origin!r} is not an https:// origin."
        for origin in settings.cors_origins
        if not origin.startswith("https://")
    ]
    return errors


def _unsafe_transports(settings: Settings) -> list[str]:
    databases = {
        "DATABASE_URL": settings.database_url,
        "OSLIRA_DATABASE_USER_URL": settings.database_user_url,
        "OSLIRA_DATABASE_ADMIN_URL": settings.database_admin_url,
    }
    return unsafe_transports(databases, settings.plaintext_hosts)


def _repeated_characters(settings: Settings) -> list[str]:
    secrets = {
        "OSLIRA_JWT_SECRET": settings.identity.secret,
        "SUPABASE_SERVICE_ROLE_KEY": settings.identity.service_role_key,
        "OSLIRA_WEBHOOK_SIGNING_KEY": settings.webhooks.signing_key,
        "OSLIRA_OBJECT_STORE_SECRET": settings.object_store_secret,
        "CLOUDFLARE_AI_GATEWAY_TOKEN": settings.providers.cloudflare_token,
        **{PROVIDERS[name]: key for name, key in settings.providers.keys.items()},
    }
    return [
        f"{name}: one repeated character is not a secret."
        for name, secret in secrets.items()
        if len(set(secret)) == 1
    ]
