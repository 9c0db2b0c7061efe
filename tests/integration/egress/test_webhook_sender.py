import uuid

import pytest

from infrastructure.egress.webhook_sender import WebhookSender
from tests.support import NOON
from tests.support.scripted_server import hang_up, http

ACCOUNT = uuid.uuid4()


@pytest.fixture
def sender(client_of):
    return WebhookSender(client_of(), lambda: NOON)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("120", 120), ("1.5", 2), ("9" * 400, 86_400), ("soon", None)),
        ("Thu, 01 Jan 2026 12:01:00 GMT", 60),
        ("Thu, 01 Jan 2026 12:00:00 +99999999999999999", None),
    ],
)
async def test_retry_after_of_the_receiver_is_returned(sender, server, text, seconds):
    server.script(http(503, retry_after=text))

    answer = await sender.send(ACCOUNT, server.url, {}, b"{}")

    assert (answer.http_status, answer.error, answer.retry_after_s) == (503, None, seconds)
    assert answer.duration_ms >= 0


async def test_failure_is_returned_and_not_raised(sender, server):
    server.script(hang_up)

    answer = await sender.send(ACCOUNT, server.url, {}, b"{}")

    assert (answer.http_status, answer.error) == (None, "answer_malformed")
