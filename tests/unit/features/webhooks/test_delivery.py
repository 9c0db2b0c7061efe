"""Decision on a delivery after an attempt."""

import json
import uuid
from datetime import timedelta

import pytest

from features.webhooks.domain.delivery import ClaimedDelivery, DeliveryDecision, DeliveryResponse
from tests.support import NOON

DAY = timedelta(days=1)


def due(**fields):
    return ClaimedDelivery(
        **{
            "account_id": uuid.uuid4(),
            "id": uuid.uuid4(),
            "message_id": uuid.uuid4(),
            "endpoint_id": uuid.uuid4(),
            "type": "run.completed",
            "data": '{"b": 1, "a": [1.50, "é"]}',
            "happened_at": NOON,
            "url": "https://hooks.example",
            "secret_version": 1,
            "rotated_at": None,
            "failures": 0,
            "failing_since": None,
            "claimed_until": NOON,
            "claimed_at": NOON,
            **fields,
        }
    )


def test_body_contains_type_timestamp_and_data():
    body = due().body

    assert json.loads(body) == {
        "type": "run.completed",
        "timestamp": "2026-01-01T12:00:00Z",
        "data": {"b": 1, "a": [1.5, "é"]},
    }
    assert body == due().body


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_success_status_marks_the_delivery_delivered(status):
    assert due(failures=7).decide(DeliveryResponse(http_status=status)) == DeliveryDecision(
        status="delivered"
    )


@pytest.mark.parametrize(
    "answer", [DeliveryResponse(http_status=status) for status in (100, 300, 301, 400, 429, 503)]
)
def test_every_other_status_is_retried(answer):
    assert due().decide(answer) == DeliveryDecision(status="pending", retry_in=timedelta(seconds=5))


def test_delivery_is_dead_after_eight_attempts():
    decisions = [due(failures=failures).decide(DeliveryResponse(error="timed_out")) for failures in range(8)]

    assert [verdict.retry_in.total_seconds() for verdict in decisions[:-1]] == [
        *(5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
    ]
    assert decisions[-1] == DeliveryDecision(status="dead")


@pytest.mark.parametrize(
    ("failures", "asked_for_s", "expected"),
    [
        (0, 60, timedelta(seconds=60)),
        (1, 60, timedelta(minutes=5)),
        (0, 10**9, DAY),
        (0, 0, timedelta(seconds=5)),
    ],
)
def test_retry_after_extends_the_delay_up_to_one_day(failures, asked_for_s, expected):
    answer = DeliveryResponse(http_status=503, retry_after_s=asked_for_s)

    assert due(failures=failures).decide(answer).retry_in == expected


def test_status_410_disables_the_endpoint():
    assert due().decide(DeliveryResponse(http_status=410)) == DeliveryDecision(
        status="failed", disables="gone"
    )


@pytest.mark.parametrize(
    ("failing_for", "expected"),
    [
        (5 * DAY, DeliveryDecision(status="pending", retry_in=timedelta(seconds=5))),
        (5 * DAY + timedelta(seconds=1), DeliveryDecision(status="failed", disables="failing")),
    ],
)
def test_five_days_of_failure_disable_the_endpoint(failing_for, expected):
    assert due(failing_since=NOON - failing_for).decide(DeliveryResponse(http_status=500)) == expected


def test_success_after_five_days_of_failure_does_not_disable_the_endpoint():
    assert due(failing_since=NOON - 9 * DAY).decide(DeliveryResponse(http_status=200)) == DeliveryDecision(
        status="delivered"
    )
