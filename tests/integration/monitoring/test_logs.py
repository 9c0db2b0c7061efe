"""Content and redaction of log lines."""

import contextlib
import io
import json
import logging

import pytest
import structlog

from infrastructure.monitoring.logs import configure_logs, redact
from shared.middleware.credential_redaction import current_credentials
from shared.middleware.request_id import current_request_id

ADDRESS = "postgresql://owner:canary@db.example:5432/oslira"
PRIVATE_KEY = "-----BEGIN EC PRIVATE KEY-----\ncanarycanarycanary\ncanary==\n-----END EC PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canary-canary_canary"


@pytest.fixture
def start(monkeypatch):
    """Returns a function that configures the logs and returns their stream. Restored afterwards."""
    root, before = logging.getLogger(), structlog.get_config()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])

    def configure(*, as_json, level=logging.INFO):
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            configure_logs(as_json=as_json, level=level)
        return stderr

    yield configure
    structlog.configure(**before)
    root.setLevel(level)


@pytest.fixture
def lines(start):
    """Returns a function that returns the JSON lines written so far."""
    stderr = start(as_json=True)
    return lambda: [json.loads(line) for line in stderr.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (ADDRESS, "postgresql://owner:[redacted]@db.example:5432/oslira"),
        ("redis://:canary@cache:6379", "redis://:[redacted]@cache:6379"),
        ("amqp://u:can%40ary/x?y@h, again", "amqp://u:[redacted]@h, again"),
        ("postgresql://owner:can@ary@db.example/d", "postgresql://owner:[redacted]@db.example/d"),
        (TOKEN, "[redacted]"),
        (f"token={TOKEN}&x=1", "token=[redacted]&x=1"),
        ("sk-proj-canary_canary", "[redacted]"),
        ("sk-ant-api03-canary-canary", "[redacted]"),
        ("key sk_live_canarycanary.", "key [redacted]."),
        ("rk_test_canarycanary", "[redacted]"),
        ("whsec_canarycanary", "[redacted]"),
        ("sb_secret_canarycanary", "[redacted]"),
        ("apify_api_canarycanary", "[redacted]"),
        (
            "https://app.example/accept?token=osl_invite_canary-canary_",
            "https://app.example/accept?token=[redacted]",
        ),
        (f"key {PRIVATE_KEY} read", "key [redacted] read"),
        (repr(PRIVATE_KEY), "'[redacted]'"),
        (PRIVATE_KEY[:60], "[redacted]"),
        ("Authorization: Bearer canary/canary+canary==", "Authorization: Bearer [redacted]"),
        ("authorization: bearer canary", "authorization: bearer [redacted]"),
        ("Authorization: BEARER canary", "Authorization: BEARER [redacted]"),
        (f"{ADDRESS} and {TOKEN}", "postgresql://owner:[redacted]@db.example:5432/oslira and [redacted]"),
    ],
)
def test_only_the_secret_in_a_text_is_redacted(text, redacted):
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://127.0.0.1:8000/health/ready",
        "write to person@example.com",
        "risk-assessment-2026 of task_force_one",
        "postgresql://db.example/oslira",
    ],
)
def test_text_without_secrets_is_unchanged(text):
    assert redact(text) == text


def test_line_has_event_timestamp_level_and_request_id(lines):
    reset = current_request_id.set("request-0001")
    structlog.get_logger("ledger").warning("hold_placed", credits=5)
    current_request_id.reset(reset)

    (line,) = lines()

    timestamp = line.pop("timestamp")
    assert timestamp.endswith("Z")
    assert line == {
        "event": "hold_placed",
        "credits": 5,
        "level": "warning",
        "logger": "ledger",
        "request_id": "request-0001",
    }


def test_outside_a_request_there_is_no_request_id(lines):
    structlog.get_logger("server").info("listening")

    assert "request_id" not in lines()[0]


def test_a_library_logs_through_the_same_processors(lines):
    logging.getLogger("some.library").warning("cannot reach %s", ADDRESS)

    (line,) = lines()

    assert line["event"] == "cannot reach postgresql://owner:[redacted]@db.example:5432/oslira"
    assert (line["level"], line["logger"]) == ("warning", "some.library")


def lose():
    raise ConnectionError(f"no answer from {ADDRESS} with {TOKEN}")


@pytest.mark.parametrize("as_json", [True, False])
def test_traceback_contains_no_secret(start, as_json):
    stderr = start(as_json=as_json)
    with pytest.raises(ConnectionError) as lost:
        lose()

    structlog.get_logger("database").error("lost", exc_info=lost.value)
    logging.getLogger("some.library").error("lost", exc_info=lost.value)

    written = stderr.getvalue()
    assert written.count("in lose") == 2
    assert written.count("ConnectionError: no answer from postgresql://owner:[redacted]@db") == 2
    assert "canary" not in written


@pytest.mark.parametrize(
    "value",
    [
        ADDRESS,
        {"authorization": f"Bearer {TOKEN}"},
        [ADDRESS],
        (TOKEN, 1),
        ConnectionError(ADDRESS),
        b"Bearer canary",
    ],
    ids=["text", "mapping", "list", "tuple", "error", "bytes"],
)
def test_value_of_any_type_is_redacted(lines, value):
    structlog.get_logger("database").info("found", value=value)

    (line,) = lines()

    assert "[redacted]" in json.dumps(line["value"])
    assert "canary" not in json.dumps(line)


@pytest.mark.parametrize("credential", [b"any text at all", b"\xff\xfe canary", b"canary=="])
def test_credentials_of_the_request_are_redacted(lines, credential):
    reset = current_credentials.set((credential, b""))
    text = credential.decode("latin-1")
    structlog.get_logger("database").info("found", value=f"({text})", error=KeyError(text))
    current_credentials.reset(reset)

    (line,) = lines()

    assert line["value"] == "([redacted])"
    assert "canary" not in line["error"]


def test_very_short_credential_is_not_redacted(lines):
    reset = current_credentials.set((b"x", b""))
    structlog.get_logger("database").info("fixed")
    current_credentials.reset(reset)

    assert lines()[0]["event"] == "fixed"


def test_terminal_lines_are_readable(start):
    stderr = start(as_json=False)

    structlog.get_logger("server").info("listening", address=ADDRESS)

    assert "listening" in stderr.getvalue()
    assert "address=postgresql://owner:[redacted]@db.example:5432/oslira" in stderr.getvalue()


def test_events_below_the_level_are_not_written(start):
    stderr = start(as_json=True, level=logging.WARNING)

    structlog.get_logger("server").info("listening")
    structlog.get_logger("server").warning("drain_cut_short")

    (line,) = stderr.getvalue().splitlines()
    assert json.loads(line)["event"] == "drain_cut_short"


def test_line_break_in_a_value_is_escaped(lines):
    structlog.get_logger("server").info("listening", host='x\n{"event": "forged"}')

    assert len(lines()) == 1
