"""Invitations via Supabase's client against the simulator, with and without faults."""

import asyncio
import contextlib
import io
import json
import logging

import httpx
import pytest
import structlog
from structlog.testing import capture_logs

from features.auth.domain.errors import InvitationNotSent
from infrastructure.identity.supabase_mail import NoInvitationMail, SupabaseInvitationMail, SupabaseProject
from infrastructure.monitoring.logs import configure_logs
from shared.errors import Unavailable
from simulators.supabase import SERVICE_ROLE_KEY
from simulators.supervisor import Simulators
from tests.support.jwks_server import key_server

LINK = "https://app.example/join?token=canary-link"
INVITE, OTP = "/auth/v1/invite", "/auth/v1/otp"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def url(data_dir):
    simulators = Simulators((str(data_dir), "http://127.0.0.1/auth/v1", "authenticated"))
    yield await simulators.address()
    await simulators.close()


def mail_to(*accesses, timeout_s=10.0):
    """The adapter with a resolver that returns these endpoints in order."""
    waiting = list(accesses)

    async def access():
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return SupabaseInvitationMail(access, timeout_s=timeout_s)


@pytest.fixture(scope="module")
async def mail(url):
    mail = mail_to(SupabaseProject(url=url, service_role_key=SERVICE_ROLE_KEY))
    yield mail
    await mail.close()


@pytest.fixture
def invite():
    """Returns a function that sends an invitation."""

    async def send(mail, email="ada@example.com"):
        await mail.send(email, link=LINK, account_name="Looms", inviter="grace@example.com")

    return send


@pytest.fixture(scope="module")
async def fault(url):
    """Returns a function that sets the fault of the simulator's next response."""
    async with httpx.AsyncClient(base_url=url) as client:

        async def set_fault(route, **fault):
            (await client.post("/_faults", json={"route": route, **fault})).raise_for_status()

        yield set_fault


@pytest.fixture
def outbox(data_dir):
    def read(email):
        path = data_dir / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(mail["subject"], mail["link"]) for mail in map(json.loads, lines) if mail["to"] == email]

    return read


async def test_new_user_is_invited_and_known_user_gets_a_sign_in_link(mail, invite, outbox):
    await invite(mail, "new@example.com")
    await invite(mail, "new@example.com")

    assert outbox("new@example.com") == [("You have been invited", LINK), ("Your sign-in link", LINK)]
    assert mail.failure is None


async def test_user_metadata_contains_account_and_inviter(mail, invite, url):
    await invite(mail, "data@example.com")

    headers = {"apikey": SERVICE_ROLE_KEY, "Authorization": f"Bearer {SERVICE_ROLE_KEY}"}
    async with httpx.AsyncClient(base_url=url, headers=headers) as client:
        users = (await client.get("/auth/v1/admin/users?per_page=1000")).json()["users"]
    (data,) = [user["user_metadata"] for user in users if user["email"] == "data@example.com"]
    assert data == {"account_name": "Looms", "inviter": "grace@example.com"}


EMPTY_USER = '{"id": null}'
BAD_DAYS = {
    "429": {"status": 429, "body": '{"code": "over_email_send_rate_limit", "message": "canary"}'},
    "429 without a body": {"status": 429, "body": ""},
    "500": {"status": 500, "body": '{"message": "canary"}'},
    "500 in html": {"status": 500, "body": "<html>canary</html>"},
    "502": {"status": 502, "body": "Bad Gateway"},
    "503": {"status": 503, "body": '{"msg": "canary"}'},
    "522 of a proxy": {"status": 522, "body": ""},
    "401": {"status": 401, "body": '{"message": "Invalid API key"}'},
    "403": {"status": 403, "body": '{"code": 403, "error_code": "not_admin", "msg": "canary"}'},
    "422 of another kind": {"status": 422, "body": '{"error_code": "email_address_invalid", "msg": "x"}'},
    "302": {"status": 302, "body": ""},
    "errors in a list": {"status": 400, "body": '["canary"]'},
    "errors in numbers": {"status": 400, "body": '{"error_code": 1, "msg": {"canary": []}}'},
    "a code that is no code": {"status": 400, "body": '{"error_code": "canary-link\\\\n", "msg": "x"}'},
    "200 with garbage": {"status": 200, "body": "canary"},
    "200 with nothing": {"status": 200, "body": ""},
    "200 with a list": {"status": 200, "body": "[]"},
    "200 with an empty user": {"status": 200, "body": EMPTY_USER},
    "200 nested deep": {"status": 200, "body": "[" * 100_000},
}


@pytest.mark.parametrize("bad_day", BAD_DAYS.values(), ids=BAD_DAYS.keys())
async def test_fault_raises_invitation_not_sent(mail, invite, fault, bad_day):
    await fault(INVITE, **bad_day)

    with pytest.raises(InvitationNotSent) as refusal:
        await invite(mail, "bad@example.com")

    assert isinstance(refusal.value, Unavailable)
    assert (refusal.value.code, "Try again" in str(refusal.value)) == ("invitation_not_sent", True)
    assert (refusal.value.__cause__, refusal.value.args) == (None, (InvitationNotSent.text,))


@pytest.mark.parametrize("status", [429, 500, 422])
async def test_failed_sign_in_link_raises_invitation_not_sent(mail, invite, fault, status):
    await invite(mail, f"known-{status}@example.com")
    await fault(OTP, status=status)

    with pytest.raises(InvitationNotSent):
        await invite(mail, f"known-{status}@example.com")


@pytest.mark.parametrize("code", ["email_exists", "user_already_exists"])
async def test_both_error_codes_of_a_known_user_cause_a_sign_in_link(mail, invite, fault, outbox, code):
    await invite(mail, f"{code}@example.com")
    await fault(INVITE, status=422, body=json.dumps({"error_code": code, "msg": "registered"}))

    await invite(mail, f"{code}@example.com")

    assert outbox(f"{code}@example.com")[-1] == ("Your sign-in link", LINK)


async def test_late_response_raises_invitation_not_sent(invite, fault, url):
    mail = mail_to(SupabaseProject(url=url, service_role_key=SERVICE_ROLE_KEY), timeout_s=0.1)
    await fault(INVITE, delay_ms=60_000)

    with pytest.raises(InvitationNotSent):
        await invite(mail, "late@example.com")
    await mail.close()

    assert mail.failure in {"TimeoutError", "AuthRetryableError"}


async def test_slow_response_raises_invitation_not_sent(invite):
    async with key_server() as service:
        service.drips = True
        mail = mail_to(
            SupabaseProject(url=service.url.rpartition("/")[0], service_role_key="key"), timeout_s=0.2
        )
        with pytest.raises(InvitationNotSent):
            async with asyncio.timeout(30):
                await invite(mail)
        await mail.close()

    assert mail.failure == "TimeoutError"


async def test_failure_is_reported_until_the_service_recovers(invite, unused_tcp_port, url):
    absent = SupabaseProject(url=f"http://127.0.0.1:{unused_tcp_port}", service_role_key=SERVICE_ROLE_KEY)
    mail = mail_to(absent, SupabaseProject(url=url, service_role_key=SERVICE_ROLE_KEY))
    with pytest.raises(InvitationNotSent):
        await invite(mail, "absent@example.com")
    while_down = mail.failure
    await invite(mail, "absent@example.com")
    await mail.close()

    assert (while_down, mail.failure) == ("AuthRetryableError", None)


async def test_rejected_email_address_is_not_a_service_failure(mail, invite, fault):
    await invite(mail, "valid@example.com")
    await fault(INVITE, status=422, body='{"error_code": "email_address_invalid", "msg": "x"}')

    with pytest.raises(InvitationNotSent):
        await invite(mail, "invalid@example.com")

    assert mail.failure is None


async def test_rotated_key_applies_to_the_next_invitation(invite, url):
    mail = mail_to(
        *(SupabaseProject(url=url, service_role_key=key) for key in ("of yesterday", SERVICE_ROLE_KEY))
    )
    with pytest.raises(InvitationNotSent):
        await invite(mail, "rotated@example.com")
    while_refused = mail.failure
    await invite(mail, "rotated@example.com")
    await mail.close()

    assert (while_refused, mail.failure) == ("no_authorization (401)", None)


async def test_concurrent_invitations_share_a_client(mail, invite, outbox):
    await asyncio.gather(*(invite(mail, f"many-{number}@example.com") for number in range(16)))

    assert all(len(outbox(f"many-{number}@example.com")) == 1 for number in range(16))


async def test_redirect_is_not_followed(invite):
    async with key_server() as service, key_server() as elsewhere:
        service.status, service.headers = "307 Temporary Redirect", f"Location: {elsewhere.url}\r\n"
        mail = mail_to(SupabaseProject(url=service.url.rpartition("/")[0], service_role_key=SERVICE_ROLE_KEY))
        with pytest.raises(InvitationNotSent):
            await invite(mail)
        await mail.close()

    assert len(service.paths) == 1
    assert elsewhere.paths == []


@pytest.fixture
def log_text(monkeypatch):
    """Returns a function that returns all logs, including the libraries', at level DEBUG."""
    root, before = logging.getLogger(), structlog.get_config()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        configure_logs(as_json=True, level=logging.DEBUG)
    structlog.configure(cache_logger_on_first_use=False)  # or the adapter's logger would keep this
    yield stderr.getvalue
    structlog.configure(**before)
    root.setLevel(level)


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "422 X", "429 X", "500 X", "503 X"])
async def test_logs_and_errors_contain_neither_key_nor_link(invite, log_text, status):
    """The service repeats both in every field of its response."""
    key = "canary-service-key"
    async with key_server() as service:
        service.status = status
        service.document = json.dumps(
            dict.fromkeys(("msg", "message", "code", "error_code", "error", "id"), f"{key} {LINK}")
        ).encode()
        access = SupabaseProject(url=service.url.rpartition("/")[0], service_role_key=key)
        mail = mail_to(access)
        with pytest.raises(InvitationNotSent) as refusal:
            await invite(mail)
        await mail.close()

    text = f"{log_text()} {refusal.value} {refusal.value!r} {mail.failure} {access} {[access]}"
    assert "invitation_not_sent" in text
    assert "canary" not in text


async def test_without_email_service_invitation_not_sent_is_raised(invite):
    with capture_logs() as logs, pytest.raises(InvitationNotSent):
        await invite(NoInvitationMail())

    assert "SUPABASE_URL" in logs[0]["reason"]
