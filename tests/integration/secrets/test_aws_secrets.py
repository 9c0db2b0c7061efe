"""Variables from AWS Secrets Manager, requested from a compatible local server."""

import uuid

import boto3
import pytest
from moto.server import ThreadedMotoServer

from core.settings.settings import InvalidSettings
from core.wiring.bootstrap import read_runtime
from infrastructure.secrets.aws import AwsSecrets

NAMES = ("DATABASE_URL", "OPENAI_API_KEY")


class Clock:
    """Clock that advances only when a test sets it."""

    now_s = 1_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture(scope="module")
def server():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3, "DEFAULT_SESSION", None)  # boto3 stores credentials in it
        yield server
    server.stop()


@pytest.fixture(autouse=True)
def surrounding_cloud(server, monkeypatch):
    """Environment variables that direct boto3 to the local server."""
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


@pytest.fixture
def outage(server):
    """Returns a function that stops the server until the end of the test."""
    yield server.stop
    server.start()


@pytest.fixture
def prefix():
    return f"oslira/{uuid.uuid4().hex}/"


@pytest.fixture
def keep(prefix):
    """Returns a function that stores or changes a secret."""
    client = boto3.client("secretsmanager")

    def put(name, value):
        try:
            client.create_secret(Name=prefix + name, SecretString=value)
        except client.exceptions.ResourceExistsException:
            client.put_secret_value(SecretId=prefix + name, SecretString=value)

    return put


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def secrets(prefix, clock):
    environ = {"DATABASE_URL": "from the environment", "OSLIRA_PORT": "8001"}
    return AwsSecrets(environ, prefix=prefix, names=NAMES, now_s=clock)


def test_secret_overrides_the_environment(secrets, keep):
    keep("DATABASE_URL", "from the service")

    assert secrets.lookup("DATABASE_URL") == "from the service"
    assert secrets.failure is None


def test_missing_secret_falls_back_to_the_environment(secrets):
    assert secrets.lookup("DATABASE_URL") == "from the environment"
    assert secrets.lookup("OPENAI_API_KEY") is None
    assert secrets.failure is None


@pytest.mark.parametrize(("seconds", "value"), [(0, "old"), (299, "old"), (301, "new")])
def test_rotated_secret_is_used_within_five_minutes(secrets, keep, clock, seconds, value):
    keep("DATABASE_URL", "old")
    secrets.lookup("DATABASE_URL")
    keep("DATABASE_URL", "new")

    clock.now_s += seconds

    assert secrets.lookup("DATABASE_URL") == value


@pytest.mark.parametrize(("seconds", "value"), [(299, "from the environment"), (301, "from the service")])
def test_missing_secret_is_cached_for_five_minutes(secrets, keep, clock, seconds, value):
    secrets.lookup("DATABASE_URL")
    keep("DATABASE_URL", "from the service")

    clock.now_s += seconds

    assert secrets.lookup("DATABASE_URL") == value


def test_last_known_value_is_used_during_an_outage(secrets, keep, clock, outage):
    keep("DATABASE_URL", "from the service")
    secrets.lookup("DATABASE_URL")
    outage()
    clock.now_s += 301

    assert secrets.lookup("DATABASE_URL") == "from the service"
    assert secrets.failure == "EndpointConnectionError"


def test_environment_is_used_during_an_outage_at_startup(secrets, outage):
    outage()

    assert secrets.lookup("DATABASE_URL") == "from the environment"
    assert secrets.failure == "EndpointConnectionError"


def test_failed_lookup_is_retried_after_seconds(secrets, keep, clock, prefix):
    service, secret_id = boto3.client("secretsmanager"), prefix + "DATABASE_URL"
    keep("DATABASE_URL", "before")
    service.delete_secret(SecretId=secret_id, RecoveryWindowInDays=7)
    assert secrets.lookup("DATABASE_URL") == "from the environment"
    service.restore_secret(SecretId=secret_id)

    clock.now_s += 11

    assert secrets.lookup("DATABASE_URL") == "before"
    assert secrets.failure is None


def test_error_of_the_service_is_reported_by_its_code(secrets, keep, clock, prefix):
    keep("DATABASE_URL", "from the service")
    secrets.lookup("DATABASE_URL")
    boto3.client("secretsmanager").delete_secret(SecretId=prefix + "DATABASE_URL", RecoveryWindowInDays=7)
    clock.now_s += 301

    assert secrets.lookup("DATABASE_URL") == "from the service"
    assert secrets.failure == "InvalidRequestException"


def test_binary_secret_falls_back_to_the_environment(secrets, prefix):
    boto3.client("secretsmanager").create_secret(Name=prefix + "DATABASE_URL", SecretBinary=b"\xff")

    assert secrets.lookup("DATABASE_URL") == "from the environment"
    assert secrets.failure


def test_other_names_are_never_requested(secrets, keep):
    keep("OSLIRA_PORT", "9999")

    assert secrets.lookup("OSLIRA_PORT") == "8001"
    assert secrets.lookup("HOME") is None


def test_other_names_are_available_during_an_outage(secrets, outage):
    outage()

    assert secrets.lookup("OSLIRA_PORT") == "8001"
    assert secrets.failure is None


def test_settings_read_the_database_url_from_the_service(keep, prefix):
    keep("DATABASE_URL", "postgresql://u:p@from-the-service/d")

    place = read_runtime(
        {
            "OSLIRA_SECRETS_PREFIX": prefix,
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": "postgresql://u:p@elsewhere/d",
        }
    )

    assert place.settings.database_url == "postgresql://u:p@from-the-service/d"
    assert place.lookup("DATABASE_URL") == "postgresql://u:p@from-the-service/d"


def test_without_a_prefix_the_service_is_not_used(keep):
    keep("DATABASE_URL", "postgresql://u:p@from-the-service/d")

    place = read_runtime({"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": "postgresql://u:p@elsewhere/d"})

    assert place.settings.database_url == "postgresql://u:p@elsewhere/d"
    assert place.secrets is None


def test_missing_region_raises_invalid_settings(monkeypatch, tmp_path):
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(InvalidSettings, match="AWS_DEFAULT_REGION"):
        read_runtime({"OSLIRA_SECRETS_PREFIX": "oslira/"})
