"""Signatures, checked with the verifier of the Standard Webhooks library."""

import base64
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from features.webhooks.domain.endpoint import ROTATION_OVERLAP, EndpointId, signing_versions
from features.webhooks.domain.signature import SigningSecrets, signed_headers, webhook_id
from shared.ids import AccountId
from tests.support import NOON

ACCOUNT, ENDPOINT = AccountId(uuid.uuid4()), EndpointId(uuid.uuid4())
SECRETS = SigningSecrets(b"k" * 32)
BODY = '{"type":"run.completed","data":{"name":"Zoë"}}'.encode()


def verified(secret, headers, body=BODY):
    return Webhook(secret).verify(body, headers)


def signed(*versions, at=None):
    raw = [SECRETS.raw(ACCOUNT, ENDPOINT, version) for version in versions]
    return signed_headers(raw, uuid.uuid4(), BODY, at or datetime.now(UTC))


def test_signature_verifies_with_the_endpoint_secret():
    assert verified(SECRETS.secret(ACCOUNT, ENDPOINT, 1), signed(1))["data"] == {"name": "Zoë"}


@pytest.mark.parametrize("version", [2, 1])
def test_both_secrets_verify_during_rotation(version):
    assert verified(SECRETS.secret(ACCOUNT, ENDPOINT, version), signed(2, 1))


@pytest.mark.parametrize(
    ("account", "endpoint", "version", "key"),
    [
        (ACCOUNT, ENDPOINT, 2, b"k" * 32),
        (ACCOUNT, EndpointId(uuid.uuid4()), 1, b"k" * 32),
        (AccountId(uuid.uuid4()), ENDPOINT, 1, b"k" * 32),
        (ACCOUNT, ENDPOINT, 1, b"j" * 32),
    ],
    ids=["version", "endpoint", "account", "key"],
)
def test_another_secret_does_not_verify(account, endpoint, version, key):
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        verified(SigningSecrets(key).secret(account, endpoint, version), signed(1))


def test_changed_headers_or_body_do_not_verify():
    secret, headers = SECRETS.secret(ACCOUNT, ENDPOINT, 1), signed(1)

    for changed in (
        {"webhook-id": "msg_x"},
        {"webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1)},
    ):
        with pytest.raises(WebhookVerificationError):
            verified(secret, headers | changed)
    with pytest.raises(WebhookVerificationError):
        verified(secret, headers, BODY + b" ")


def test_a_secret_has_the_form_and_length_of_the_specification():
    prefix, _, encoded = SECRETS.secret(ACCOUNT, ENDPOINT, 1).partition("_")

    assert prefix == "whsec"
    assert 24 <= len(base64.b64decode(encoded, validate=True)) <= 64


def test_a_message_has_one_id_for_all_its_attempts():
    notice = uuid.UUID(int=1)

    assert webhook_id(notice) == "msg_" + "0" * 31 + "1"


def test_key_is_not_in_the_repr():
    assert "kkk" not in repr(SECRETS)


@pytest.mark.parametrize(
    ("version", "rotated_at", "expected"),
    [
        (1, None, (1,)),
        (2, NOON, (2, 1)),
        (3, NOON - ROTATION_OVERLAP + timedelta(seconds=1), (3, 2)),
        (3, NOON - ROTATION_OVERLAP, (3,)),
    ],
)
def test_previous_secret_also_signs_for_one_day(version, rotated_at, expected):
    assert signing_versions(version, rotated_at, NOON) == expected
