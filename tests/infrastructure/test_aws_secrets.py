"""Variables from AWS Secrets Manager, asked over the wire from a server that speaks its protocol."""

import uuid

import boto3
import pytest
from moto.server import ThreadedMotoServer

from core.settings.settings import InvalidSettings
from core.wiring.bootstrap import runtime
from infrastructure.secrets.aws import AwsSecrets

NAMES = ("DATABASE_URL", "OPENAI_API_KEY")


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 1_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture(scope="module")
def server():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3, "DEFAULT_SESSION", None)  # boto3 keeps credentials with it
        yield server
    server.stop()


@pytest.fixture(autouse=True)
def surrounding_cloud(server, monkeypatch):
    """What boto3 reads from the environment, leading to the server on this machine."""
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


@pytest.fixture
def outage(server):
    """A function: from now on nothing answers. It ends with the test."""
    yield server.stop
    server.start()


@pytest.fixture
def prefix():
    return f"oslira/{uuid.uuid4().hex}/"


@pytest.fixture
def keep(prefix):
    """A function: keep a secret, or change it."""
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


def test_a_secret_outranks_the_environment(secrets, keep):
    keep("DATABASE_URL", "from the service")

    assert secrets.lookup("DATABASE_URL") == "from the service"
    assert secrets.failure is None


def test_without_a_secret_the_environment_serves(secrets):
    assert secrets.lookup("DATABASE_URL") == "from the environment"
    assert secrets.lookup("OPENAI_API_KEY") is None
    assert secrets.failure is None


@pytest.mark.parametrize(("seconds", "value"), [(0, "old"), (299, "old"), (301, "new")])
def test_a_rotated_secret_is_taken_up_within_five_minutes(secrets, keep, clock, seconds, value):
    keep("DATABASE_URL", "old")
    secrets.lookup("DATABASE_URL")
    keep("DATABASE_URL", "new")

    clock.now_s += seconds

    assert secrets.lookup("DATABASE_URL") == value


@pytest.mark.parametrize(("seconds", "value"), [(299, "from the environment"), (301, "from the service")])
def test_that_there_is_no_secret_is_remembered_as_long(secrets, keep, clock, seconds, value):
    secrets.lookup("DATABASE_URL")
    keep("DATABASE_URL", "from the service")

    clock.now_s += seconds

    assert secrets.lookup("DATABASE_URL") == value


def test_while_the_service_is_down_the_last_known_value_serves(secrets, keep, clock, outage):
    keep("DATABASE_URL", "from the service")
    secrets.lookup("DATABASE_URL")
    outage()
    clock.now_s += 301

    assert secrets.lookup("DATABASE_URL") == "from the service"
    assert secrets.failure == "EndpointConnectionError"


def test_a_service_that_is_down_from_the_start_leaves_the_environment(secrets, outage):
    outage()

    assert secrets.lookup("DATABASE_URL") == "from the environment"
    assert secrets.failure == "EndpointConnectionError"


def test_after_a_failure_the_service_is_asked_again_in_seconds(secrets, keep, clock, prefix):
    service, secret_id = boto3.client("secretsmanager"), prefix + "DATABASE_URL"
    keep("DATABASE_URL", "before")
    service.delete_secret(SecretId=secret_id, RecoveryWindowInDays=7)
    assert secrets.lookup("DATABASE_URL") == "from the environment"
    service.restore_secret(SecretId=secret_id)

    clock.now_s += 11

    assert secrets.lookup("DATABASE_URL") == "before"
    assert secrets.failure is None


def test_a_refusal_of_the_service_is_told_by_its_code(secrets, keep, clock, prefix):
    keep("DATABASE_URL", "from the service")
    secrets.lookup("DATABASE_URL")
    boto3.client("secretsmanager").delete_secret(SecretId=prefix + "DATABASE_URL", RecoveryWindowInDays=7)
    clock.now_s += 301

    assert secrets.lookup("DATABASE_URL") == "from the service"
    assert secrets.failure == "InvalidRequestException"


def test_a_secret_of_bytes_does_not_stop_the_process(secrets, prefix):
    boto3.client("secretsmanager").create_secret(Name=prefix + "DATABASE_URL", SecretBinary=b"\xff")

    assert secrets.lookup("DATABASE_URL") == "from the environment"
    assert secrets.failure


def test_names_that_are_not_secrets_are_never_asked_for(secrets, keep):
    keep("OSLIRA_PORT", "9999")

    assert secrets.lookup("OSLIRA_PORT") == "8001"
    assert secrets.lookup("HOME") is None


def test_names_that_are_not_secrets_need_no_service(secrets, outage):
    outage()

    assert secrets.lookup("OSLIRA_PORT") == "8001"
    assert secrets.failure is None


def test_the_settings_take_the_database_from_the_service(keep, prefix):
    keep("DATABASE_URL", "postgresql://u:p@from-the-service/d")

    place = runtime(
        {
            "OSLIRA_SECRETS_PREFIX": prefix,
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": "postgresql://u:p@elsewhere/d",
        }
    )

    assert place.settings.database_url == "postgresql://u:p@from-the-service/d"
    assert place.lookup("DATABASE_URL") == "postgresql://u:p@from-the-service/d"


def test_without_a_prefix_nobody_asks_the_service(keep):
    keep("DATABASE_URL", "postgresql://u:p@from-the-service/d")

    place = runtime({"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": "postgresql://u:p@elsewhere/d"})

    assert place.settings.database_url == "postgresql://u:p@elsewhere/d"
    assert place.secrets is None


def test_a_missing_region_is_refused_like_any_other_setting(monkeypatch, tmp_path):
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(InvalidSettings, match="AWS_DEFAULT_REGION"):
        runtime({"OSLIRA_SECRETS_PREFIX": "oslira/"})
