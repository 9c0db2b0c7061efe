"""Settings: an empty environment gives a local system, and a server rejects unsafe values."""

import pytest

from core.settings.settings import (
    HOSTS,
    SECRETS,
    UNSTATED_ENVIRONMENT,
    InvalidSettings,
    Settings,
    read_settings,
)
from tests.conftest import PROJECT

SERVER = {
    "OSLIRA_ENVIRONMENT": "production",
    "DATABASE_URL": "postgresql://owner:canary@db.example:5432/oslira?sslmode=require",
    "OSLIRA_JWT_PUBLIC_KEY": r"-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----",
    "OSLIRA_JWT_ISSUER": "https://id.example/auth/v1",
    "OSLIRA_CORS_ORIGINS": "https://app.example, https://www.example",
    "OPENAI_API_KEY": "sk-canary",
    "APIFY_TOKEN": "apify_api_canary",
    "OSLIRA_WEBHOOK_SIGNING_KEY": "canary-of-at-least-thirty-two-bytes",
}


DATABASE = "postgresql://u:p@db.example/d"


def read(**environ):
    return read_settings(environ.get)


def refused(**environ):
    with pytest.raises(InvalidSettings) as refusal:
        read(**environ)
    return refusal.value


def test_an_empty_environment_is_a_local_system_with_its_own_database():
    settings = read()

    assert settings == Settings()
    assert (settings.is_local, settings.embedded_database) == (True, True)
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8000, PROJECT / ".data")


def test_an_empty_value_counts_as_not_set():
    assert (
        read(OSLIRA_PORT="", OSLIRA_ENVIRONMENT="", DATABASE_URL="", OSLIRA_DATABASE_POOLER="") == Settings()
    )


@pytest.mark.parametrize("environment", ["local", "staging", "production"])
def test_configured_environment_is_used(environment):
    settings = read(**{**SERVER, "OSLIRA_ENVIRONMENT": environment})

    assert settings.environment == environment


@pytest.mark.parametrize("host", HOSTS)
def test_unset_environment_on_a_hosting_platform_is_production(host):
    refusal = refused(**{host: "something"})

    assert refusal.environment == "production"


def test_configured_environment_overrides_the_hosting_platform():
    assert read(OSLIRA_ENVIRONMENT="local", FLY_APP_NAME="oslira").is_local


@pytest.mark.parametrize(
    "environ",
    [
        {"DATABASE_URL": "postgresql://u:p@127.0.0.1/d"},
        {"OSLIRA_DATABASE_USER_URL": DATABASE, "OSLIRA_DATABASE_ADMIN_URL": DATABASE},
        {"OSLIRA_HOST": "0.0.0.0"},
        {"OSLIRA_HOST": "::"},
        {"OSLIRA_HOST": "box.example"},
    ],
    ids=str,
)
def test_unset_environment_with_a_database_or_a_public_address_is_an_error(environ):
    assert refused(**environ).errors == [UNSTATED_ENVIRONMENT]
    assert read(OSLIRA_ENVIRONMENT="local", **environ).is_local


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_unset_environment_is_local_on_a_loopback_address(host):
    assert read(OSLIRA_HOST=host).is_local


@pytest.mark.parametrize("environment", ["prod", "Local", "local ", "development"])
def test_an_unknown_environment_is_refused_as_if_it_were_production(environment):
    refusal = refused(OSLIRA_ENVIRONMENT=environment)

    assert f"OSLIRA_ENVIRONMENT is {environment!r}; use local, staging or production." in refusal.errors
    assert any(wrong.startswith("DATABASE_URL") for wrong in refusal.errors)


@pytest.mark.parametrize("environment", ["staging", "production"])
def test_server_reports_all_unsafe_defaults_at_once(environment):
    refusal = refused(OSLIRA_ENVIRONMENT=environment)

    assert [wrong.partition(":")[0] for wrong in refusal.errors if "simulated" not in wrong] == [
        "DATABASE_URL",
        "OSLIRA_JWT_PUBLIC_KEY",
        "OSLIRA_JWT_ISSUER",
        "OSLIRA_WEBHOOK_SIGNING_KEY",
        "OSLIRA_CORS_ORIGINS",
    ]
    assert all(wrong in str(refusal) for wrong in refusal.errors)
    assert f"do not make a {environment} system" in str(refusal)


@pytest.mark.parametrize("missing", sorted(set(SERVER) - {"OSLIRA_ENVIRONMENT"}))
def test_each_missing_value_is_named_alone(missing):
    refusal = refused(**{name: value for name, value in SERVER.items() if name != missing})

    (wrong,) = refusal.errors
    assert missing in wrong.partition(":")[0]


def test_a_complete_set_is_accepted_and_read():
    settings = read(**SERVER)

    assert (settings.is_local, settings.embedded_database) == (False, False)
    assert settings.cors_origins == ("https://app.example", "https://www.example")
    assert settings.identity.public_key == "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize("origin", ["http://app.example", "*", "app.example"])
def test_server_rejects_an_unencrypted_origin(origin):
    refusal = refused(**{**SERVER, "OSLIRA_CORS_ORIGINS": f"https://app.example {origin}"})

    assert refusal.errors == [f"OSLIRA_CORS_ORIGINS: {origin!r} is not an https:// origin."]


@pytest.mark.parametrize(
    "name",
    [
        "OSLIRA_PORT",
        "OSLIRA_DATABASE_POOL_SIZE",
        "OSLIRA_SIGNUP_BONUS_CREDITS",
        "OSLIRA_BODY_BYTES_MAX",
        "OSLIRA_DRAIN_SECONDS",
    ],
)
@pytest.mark.parametrize("value", ["x", "-1", "1.5", "1e3", "٣", " 5", "9" * 20])
def test_a_bad_number_is_refused_by_name(name, value):
    refusal = refused(**{name: value})

    (wrong,) = refusal.errors
    assert wrong.startswith(f"{name} is {value!r}; use a whole number from ")


def test_number_with_too_many_digits_is_rejected():
    refusal = refused(OSLIRA_PORT="9" * 5_000)

    assert len(refusal.errors) == 1


@pytest.mark.parametrize(("value", "accepted"), [("0", True), ("65535", True), ("65536", False)])
def test_bounds_of_a_number_are_inclusive(value, accepted):
    if accepted:
        assert read(OSLIRA_PORT=value).port == int(value)
    else:
        assert refused(OSLIRA_PORT=value).errors


def test_all_errors_are_reported_at_once():
    refusal = refused(OSLIRA_PORT="x", OSLIRA_DRAIN_SECONDS="x", OSLIRA_DATABASE_POOLER="x", DATABASE_URL="x")

    assert len(refusal.errors) == 5


@pytest.mark.parametrize(
    ("environ", "pooler"),
    [
        ({"DATABASE_URL": "postgresql://u:p@h:5432/d"}, "session"),
        ({"DATABASE_URL": "postgresql://u:p@h:6543/d"}, "transaction"),
        (
            {"DATABASE_URL": "postgresql://u:p@h:5432/d", "OSLIRA_DATABASE_POOLER": "transaction"},
            "transaction",
        ),
        ({"DATABASE_URL": "postgresql://u:p@h:6543/d", "OSLIRA_DATABASE_POOLER": "session"}, "session"),
        ({"DATABASE_URL": "postgresql://u:p@h:6543"}, "transaction"),
        ({"DATABASE_URL": "postgresql://u:p@h:6543?sslmode=require"}, "transaction"),
        (
            {
                "OSLIRA_DATABASE_USER_URL": "postgresql://app_user.project:p@h:6543/d",
                "OSLIRA_DATABASE_ADMIN_URL": "postgresql://app_admin.project:p@h:6543/d",
            },
            "transaction",
        ),
    ],
)
def test_port_6543_is_a_transaction_pooler_unless_said_otherwise(environ, pooler):
    assert read(OSLIRA_ENVIRONMENT="local", **environ).database_pooler == pooler


def test_an_unknown_pooler_is_refused():
    (wrong,) = refused(OSLIRA_DATABASE_POOLER="statement").errors

    assert wrong == "OSLIRA_DATABASE_POOLER is 'statement'; use session or transaction."


@pytest.mark.parametrize("name", ["OSLIRA_DATABASE_USER_URL", "OSLIRA_DATABASE_ADMIN_URL"])
def test_the_two_roles_addresses_go_together(name):
    url = "postgresql://u:p@h/d"
    (wrong,) = refused(OSLIRA_ENVIRONMENT="local", DATABASE_URL=url, **{name: url}).errors

    assert wrong == "OSLIRA_DATABASE_USER_URL and OSLIRA_DATABASE_ADMIN_URL go together."


def test_the_two_roles_addresses_do_without_the_owners():
    settings = read(
        OSLIRA_ENVIRONMENT="local",
        OSLIRA_DATABASE_USER_URL="postgresql://u:p@h/d",
        OSLIRA_DATABASE_ADMIN_URL="postgresql://a:p@h/d",
    )

    assert (settings.embedded_database, settings.database_url) == (False, "")


@pytest.mark.parametrize(
    "url", ["mysql://u:canary@h/d", "canary:5432/d", "canary", "postgresql://u:canary[@h/d"]
)
def test_invalid_database_address_is_rejected_without_repeating_it(url):
    refusal = refused(OSLIRA_ENVIRONMENT="local", DATABASE_URL=url)

    assert [wrong.partition(" ")[0] for wrong in refusal.errors] == ["A"]
    assert "canary" not in str(refusal)


def test_repr_contains_no_password():
    settings = read(**SERVER)

    assert "canary" not in f"{settings!r} {settings!s}"
    assert "canary" not in f"{[settings]} {(settings,)}"


@pytest.mark.parametrize(
    ("value", "store"),
    [
        ("", "postgres"),
        ("postgres", "postgres"),
        ("memory", "memory"),
    ],
)
def test_rate_limit_store_is_read(value, store):
    assert read(OSLIRA_RATE_LIMIT_STORE=value).rate_limit_store == store


@pytest.mark.parametrize("value", ["canary", "Memory", "redis://u:canary@cache:6379/0"])
def test_invalid_rate_limit_store_is_rejected_without_repeating_it(value):
    refusal = refused(OSLIRA_RATE_LIMIT_STORE=value)

    assert [wrong.partition(":")[0] for wrong in refusal.errors] == ["OSLIRA_RATE_LIMIT_STORE"]
    assert "canary" not in str(refusal)


def test_server_rejects_the_memory_store():
    (wrong,) = refused(**SERVER, OSLIRA_RATE_LIMIT_STORE="memory").errors

    assert wrong == "OSLIRA_RATE_LIMIT_STORE: with memory each process would grant the whole limit again."


DSN = "https://canary@o1.ingest.sentry.example/42"


def test_sentry_dsn_is_read():
    assert read(**SERVER, SENTRY_DSN=DSN).sentry_dsn == DSN
    assert (
        read(SENTRY_DSN="http://key@127.0.0.1:9000/base/7").sentry_dsn == "http://key@127.0.0.1:9000/base/7"
    )


@pytest.mark.parametrize(
    "dsn",
    [
        "canary",
        "https://o1.sentry.example/canary",
        "https://canary@o1.sentry.example/",
        "https://canary@o1.sentry.example/project",
        "https://canary@/42",
        "ftp://canary@o1.sentry.example/42",
        "https://canary@[::1/42",
        "https://canary@host:99999/42",
    ],
)
def test_invalid_sentry_dsn_is_rejected_and_not_repeated(dsn):
    (wrong,) = refused(SENTRY_DSN=dsn).errors

    assert wrong.startswith("SENTRY_DSN: ")
    assert "canary" not in wrong


def test_server_rejects_an_unencrypted_sentry_dsn():
    (wrong,) = refused(**SERVER, SENTRY_DSN=DSN.replace("https", "http")).errors

    assert wrong.startswith("SENTRY_DSN: without https://")


def test_sentry_dsn_is_a_secret():
    assert "SENTRY_DSN" in SECRETS


def test_credit_price_is_configurable():
    assert read().credit_price_cents == 97
    assert read(OSLIRA_CREDIT_PRICE_CENTS="50").credit_price_cents == 50


@pytest.mark.parametrize("environment", ["staging", "production"])
@pytest.mark.parametrize(
    "url",
    [
        DATABASE,
        f"{DATABASE}?sslmode=disable",
        f"{DATABASE}?sslmode=allow",
        f"{DATABASE}?sslmode=prefer",
        f"{DATABASE}?sslmode=require&sslmode=disable",
        "postgresql://u:p@127.0.0.1,db.example:5433/d?sslmode=disable",
        "postgresql://u:p@/d?host=db.example&sslmode=disable",
        "postgresql://u:p@[2001:db8::1]:5432/d?sslmode=disable",
    ],
)
def test_server_rejects_a_remote_database_without_tls(environment, url):
    (wrong,) = refused(**{**SERVER, "OSLIRA_ENVIRONMENT": environment, "DATABASE_URL": url}).errors

    assert wrong.startswith("DATABASE_URL: ")
    assert "sslmode=require" in wrong


def test_server_rejects_the_roles_addresses_without_tls():
    roles = {"OSLIRA_DATABASE_USER_URL": DATABASE, "OSLIRA_DATABASE_ADMIN_URL": DATABASE}

    assert [wrong.partition(":")[0] for wrong in refused(**SERVER, **roles).errors] == list(roles)


@pytest.mark.parametrize(
    "url",
    [
        f"{DATABASE}?sslmode=require",
        f"{DATABASE}?sslmode=verify-full&sslrootcert=system",
        "postgresql://u:p@127.0.0.1/d",
        "postgresql://u:p@[::1]:5432/d?sslmode=disable",
        "postgresql://u:p@localhost:5432/d?sslmode=disable",
        "postgresql://u:p@/d?host=/var/run/postgresql",
    ],
)
def test_server_accepts_tls_and_databases_of_its_own_machine(url):
    assert read(**{**SERVER, "DATABASE_URL": url}).database_url == url


def test_named_hosts_may_be_reached_without_tls():
    plain = {"DATABASE_URL": f"{DATABASE}?sslmode=disable"}

    settings = read(**SERVER | plain, OSLIRA_PLAINTEXT_HOSTS="DB.example, cache")

    assert settings.plaintext_hosts == ("db.example", "cache")
    assert len(refused(**SERVER | plain, OSLIRA_PLAINTEXT_HOSTS="db").errors) == 1


@pytest.mark.parametrize("host", ["*", "postgres://cache", "db:5432", "*.example", "-x", "10.0.0.0/8"])
def test_exempt_hosts_must_be_host_names_or_addresses(host):
    (wrong,) = refused(OSLIRA_PLAINTEXT_HOSTS=f"cache {host}").errors

    assert wrong.startswith(f"OSLIRA_PLAINTEXT_HOSTS: {host!r} is not a host")


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("OSLIRA_WEBHOOK_SIGNING_KEY", {}),
        ("OSLIRA_JWT_SECRET", {"OSLIRA_JWT_ALGORITHM": "HS256", "OSLIRA_JWT_PUBLIC_KEY": ""}),
        ("SUPABASE_SERVICE_ROLE_KEY", {"SUPABASE_URL": "https://project.supabase.example"}),
        ("OPENAI_API_KEY", {}),
        ("STRIPE_SECRET_KEY", {"STRIPE_WEBHOOK_SECRETS": "whsec_0123456789abcdefghijklmnopqrstuv"}),
    ],
)
def test_server_rejects_a_secret_of_one_repeated_character(name, others):
    (wrong,) = refused(**{**SERVER, **others, name: "a" * 64}).errors

    assert wrong == f"{name}: one repeated character is not a secret."
