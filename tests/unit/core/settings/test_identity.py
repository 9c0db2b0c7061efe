"""Identity settings: one algorithm, one source of keys, and no unsafe value on a server."""

import jwt
import pytest

from core.settings.identity import DEMO_SECRETS, DEMO_SERVICE_KEY, LOCAL_ISSUER, IdentitySettings
from core.settings.settings import SECRETS
from tests.unit.core.settings.test_settings import SERVER, read, refused

SUPABASE = {"SUPABASE_URL": "https://project.supabase.co", "SUPABASE_SERVICE_ROLE_KEY": "canary-key"}
SECRET = {"OSLIRA_JWT_ALGORITHM": "HS256", "OSLIRA_JWT_SECRET": "canary-" * 5}
PEM = {"OSLIRA_JWT_PUBLIC_KEY": "-----BEGIN PUBLIC KEY-----"}
JWKS = {"OSLIRA_JWT_JWKS_URL": "https://id.example/jwks.json"}
KEYLESS = {name: value for name, value in SERVER.items() if "JWT" not in name}


def test_empty_environment_uses_the_local_issuer():
    identity = read().identity

    assert identity == IdentitySettings()
    assert (identity.signs_locally, identity.algorithm, identity.issuer) == (True, "ES256", LOCAL_ISSUER)


@pytest.mark.parametrize("url", ["https://project.supabase.co", "https://project.supabase.co/"])
def test_supabase_url_sets_the_issuer_and_the_jwks_url(url):
    identity = read(**{**SUPABASE, "SUPABASE_URL": url}).identity

    assert identity.issuer == "https://project.supabase.co/auth/v1"
    assert identity.jwks_url == "https://project.supabase.co/auth/v1/.well-known/jwks.json"
    assert (identity.signs_locally, identity.supabase_url) == (False, "https://project.supabase.co")


def test_supabase_project_is_a_sufficient_identity_for_a_server():
    assert read(**KEYLESS, **SUPABASE).identity.issuer == "https://project.supabase.co/auth/v1"


def test_an_issuer_of_another_name_outranks_the_projects():
    identity = read(**SUPABASE, OSLIRA_JWT_ISSUER="https://id.example").identity

    assert identity.issuer == "https://id.example"
    assert identity.jwks_url.startswith("https://project.supabase.co/")


@pytest.mark.parametrize(
    ("environ", "source"),
    [
        ({**SUPABASE, **PEM}, "public_key"),
        ({**SUPABASE, **JWKS}, "jwks_url"),
        ({**SUPABASE, **SECRET}, "secret"),
        ({**SUPABASE, "OSLIRA_JWT_ALGORITHM": "RS256"}, "jwks_url"),
        ({**PEM, "OSLIRA_JWT_ALGORITHM": "RS256"}, "public_key"),
        (SECRET, "secret"),
        (JWKS, "jwks_url"),
    ],
)
def test_there_is_one_source_of_keys(environ, source):
    identity = read(**environ).identity

    assert [name for name in ("jwks_url", "public_key", "secret") if getattr(identity, name)] == [source]


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({"OSLIRA_JWT_ALGORITHM": "none"}, ["OSLIRA_JWT_ALGORITHM"]),
        ({"OSLIRA_JWT_ALGORITHM": "es256"}, ["OSLIRA_JWT_ALGORITHM"]),
        ({"OSLIRA_JWT_ALGORITHM": "RS256"}, ["OSLIRA_JWT_ALGORITHM"]),
        ({"OSLIRA_JWT_ALGORITHM": "HS256"}, ["OSLIRA_JWT_SECRET"]),
        ({**SECRET, "OSLIRA_JWT_SECRET": "c" * 31}, ["OSLIRA_JWT_SECRET"]),
        ({**SECRET, **PEM}, ["OSLIRA_JWT_ALGORITHM"]),
        ({**SECRET, **JWKS}, ["OSLIRA_JWT_ALGORITHM"]),
        ({**SECRET, "OSLIRA_JWT_ALGORITHM": "ES256"}, ["OSLIRA_JWT_SECRET"]),
        ({**PEM, **JWKS}, ["OSLIRA_JWT_PUBLIC_KEY"]),
        ({"SUPABASE_URL": "https://project.supabase.co"}, ["SUPABASE_URL"]),
        ({"SUPABASE_SERVICE_ROLE_KEY": "canary"}, ["SUPABASE_URL"]),
    ],
    ids=str,
)
def test_contradiction_is_reported_with_a_solution(environ, names):
    refusal = refused(**environ)

    assert [wrong.split(" ")[0].rstrip(":") for wrong in refusal.errors] == names
    assert "canary" not in str(refusal)


@pytest.mark.parametrize(
    "url",
    [
        "project.supabase.co",
        "ftp://project.supabase.co",
        "https://",
        "https://user:canary@project.supabase.co",
        "https://project.supabase.co/rest/v1",
        "https://project.supabase.co?canary",
        "https://project.supabase.co#canary",
        "https://project.supabase.co:port",
        "https://project .supabase.co",
        "https://[",
        "canary",
    ],
)
def test_invalid_project_url_is_reported_once_and_not_repeated(url):
    refusal = refused(**{**SUPABASE, "SUPABASE_URL": url})

    assert refusal.errors == ["SUPABASE_URL is not an address like https://project.supabase.co"]


@pytest.mark.parametrize(
    "url", ["id.example/jwks.json", "file:///etc/passwd", "https://u:p@id.example/jwks.json"]
)
def test_invalid_jwks_url_is_rejected(url):
    refusal = refused(OSLIRA_JWT_JWKS_URL=url)

    assert refusal.errors == ["OSLIRA_JWT_JWKS_URL is not an address like https://id.example/jwks.json"]


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({**SUPABASE, "SUPABASE_URL": "http://127.0.0.1:54321"}, "SUPABASE_URL"),
        ({"OSLIRA_JWT_JWKS_URL": "http://id.example/jwks.json"}, "OSLIRA_JWT_JWKS_URL"),
    ],
)
def test_server_rejects_keys_over_an_unencrypted_connection(environ, name):
    issuer = {"OSLIRA_JWT_ISSUER": "https://id.example"}

    assert not read(**environ, **issuer).identity.signs_locally
    assert [wrong.split(" ")[0] for wrong in refused(**KEYLESS, **environ, **issuer).errors] == [name]


def test_server_must_state_its_issuer():
    refusal = refused(**KEYLESS, **JWKS)

    assert [wrong.partition(":")[0] for wrong in refusal.errors] == ["OSLIRA_JWT_ISSUER"]


def test_the_new_secrets_may_come_from_secrets_manager():
    assert {"SUPABASE_SERVICE_ROLE_KEY", "OSLIRA_JWT_SECRET"} <= set(SECRETS)


def test_repr_contains_no_secret():
    settings = read(**SUPABASE, **SECRET)

    assert "canary" not in f"{settings!r} {settings.identity!r} {[settings.identity]}"


@pytest.mark.parametrize("environment", ["staging", "production"])
@pytest.mark.parametrize("secret", DEMO_SECRETS)
def test_server_rejects_the_secret_that_supabase_publishes(environment, secret):
    environ = {**SERVER, **SECRET, "OSLIRA_ENVIRONMENT": environment, "OSLIRA_JWT_PUBLIC_KEY": ""}

    (wrong,) = refused(**{**environ, "OSLIRA_JWT_SECRET": secret}).errors

    assert wrong.startswith("OSLIRA_JWT_SECRET: Supabase publishes this one")
    assert read(**{**SECRET, "OSLIRA_JWT_SECRET": secret}).identity.secret == secret


@pytest.mark.parametrize(
    "key",
    [DEMO_SERVICE_KEY, *(jwt.encode({"role": "service_role"}, secret, "HS256") for secret in DEMO_SECRETS)],
    ids=["published", "command line", "self-hosting"],
)
def test_server_rejects_a_service_key_that_supabase_publishes(key):
    (wrong,) = refused(**KEYLESS, **{**SUPABASE, "SUPABASE_SERVICE_ROLE_KEY": key}).errors

    assert wrong.startswith("SUPABASE_SERVICE_ROLE_KEY: Supabase publishes this one")
    assert key not in wrong


def test_server_accepts_a_service_key_of_its_own():
    key = jwt.encode({"role": "service_role"}, "a-secret-of-this-project-alone-32-bytes", "HS256")

    assert read(**KEYLESS, **{**SUPABASE, "SUPABASE_SERVICE_ROLE_KEY": key}).identity.service_role_key == key
