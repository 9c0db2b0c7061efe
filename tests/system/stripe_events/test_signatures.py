"""Webhook signatures: only bodies signed by Stripe are accepted, byte for byte (T15)."""

import dataclasses
import hmac
import json

import pytest

from tests.conftest import client_for
from tests.support.problems import assert_problem
from tests.system.stripe_events.stripe_world import event_of, id_of, signature

NOW = 1_800_000_000
NEW, OLD = "whsec_new", "whsec_old"
PATH = "/v1/webhooks/stripe"
BODY = event_of("invoice.paid", "in_1", note="ein Stück für 5 €")
GOOD = signature(BODY, secret=NEW, at=NOW)
DIGEST = GOOD.partition("v1=")[2]


def other(payload=BODY, **options):
    return signature(payload, **{"secret": NEW, "at": NOW, **options})


def spelled(instant):
    """Return a valid signature of a timestamp in a spelling that Stripe does not use."""
    digest = hmac.digest(NEW.encode(), instant.encode() + b"." + BODY, "sha256").hex()
    return f"t={instant},v1={digest}"


INVALID = {
    "no header": (None, BODY),
    "an empty header": ("", BODY),
    "another secret": (other(secret="whsec_stolen"), BODY),
    "a secret without its prefix": (other(secret="new"), BODY),
    "no secret at all": (other(secret=""), BODY),
    "the scheme for tests": (other(scheme="v0"), BODY),
    "a scheme of the future": (other(scheme="v2"), BODY),
    "no time": (f"v1={DIGEST}", BODY),
    "no digest": (f"t={NOW}", BODY),
    "two times": (f"t={NOW},{GOOD}", BODY),
    "a time that was not signed": (f"t={NOW + 1},v1={DIGEST}", BODY),
    "a time with a zero in front": (f"t=0{NOW},v1={DIGEST}", BODY),
    "a time that was signed with a zero in front": (spelled(f"0{NOW}"), BODY),
    "a time that was signed with a sign": (spelled(f"+{NOW}"), BODY),
    "a time with a sign": (f"t=+{NOW},v1={DIGEST}", BODY),
    "a time with an underscore": (f"t=1_{str(NOW)[1:]},v1={DIGEST}", BODY),
    "a time in other digits": ("t=\uff11\uff18,v1=" + DIGEST, BODY),
    "a time of a hundred digits": (f"t={'9' * 100},v1={DIGEST}", BODY),
    "a negative time": (f"t=-{NOW},v1={DIGEST}", BODY),
    "half a digest": (GOOD[:-32], BODY),
    "a digest in capitals": (f"t={NOW},v1={DIGEST.upper()}", BODY),
    "a digest that is no number": (f"t={NOW},v1={'z' * 64}", BODY),
    "written anew": (GOOD, json.dumps(json.loads(BODY), indent=1).encode()),
    "in other words": (GOOD, json.dumps(json.loads(BODY), ensure_ascii=False).encode()),
    "one byte more": (GOOD, BODY + b"\n"),
    "one byte less": (GOOD, BODY[:-1]),
    "one bit else": (GOOD, BODY[:-5] + bytes([BODY[-5] ^ 1]) + BODY[-4:]),
    "nothing sent": (GOOD, b""),
    "the digest of the body alone": (other(b"").replace(DIGEST, ""), BODY),
    "semicolons": (GOOD.replace(",", ";"), BODY),
    "ten thousand digests": (f"t={NOW}," + ",".join([f"v1={'0' * 64}"] * 10_000), BODY),
}
EXPIRED = {
    "301 seconds old": other(at=NOW - 301),
    "301 seconds ahead": other(at=NOW + 301),
    "a day ahead": other(at=NOW + 86_400),
    "from the first second": other(at=1),
}
GOOD_ONES = {
    "as Stripe writes it": GOOD,
    "299 seconds old": other(at=NOW - 299),
    "300 seconds old": other(at=NOW - 300),
    "300 seconds ahead": other(at=NOW + 300),
    "by the old secret": other(secret=OLD),
    "by both secrets": f"{GOOD},v1={other(secret=OLD).partition('v1=')[2]}",
    "beside a wrong digest": f"t={NOW},v1={'0' * 64},v1={DIGEST}",
    "beside the scheme for tests": f"{GOOD},v0={'0' * 64}",
    "with blanks": GOOD.replace(",", ", "),
}
NO_EVENTS = {
    "no JSON": b"not json",
    "no UTF-8": BODY.replace(b"in_1", b"in_\xff"),
    "invalid UTF-8 in an unread field": BODY[:-1] + b', "more": "\xff"}',
    "half a character": BODY[:-1] + b', "more": "\\ud800"}',
    "990 deep": BODY[:-1] + b', "more": ' + b"[" * 990 + b"]" * 990 + b"}",
    "a list": b"[]",
    "nothing": b"null",
    "no event": BODY.replace(b'"event"', b'"charge"'),
    "no id": BODY.replace(b'"id": "evt_', b'"name": "evt_'),
    "an id that is none": BODY.replace(b"evt_", b"evt \\u0000"),
    "a number for an id": b'{"object":"event","id":1,"type":"a.b","created":1,"data":{"object":{}}}',
    "no type": BODY.replace(b"invoice.paid", b""),
    "no time": BODY.replace(b'"created"', b'"made"'),
    "a time beyond all time": BODY.replace(b"1790000000", b"17900000000000000000"),
    "a time that is not a number": BODY.replace(b"1790000000", b"NaN"),
    "nothing that it is about": BODY.replace(b'"data"', b'"date"'),
}


@pytest.fixture(scope="module")
async def send(application):
    """Function that posts a raw body at a fixed time to an application with two secrets."""

    async def secrets():
        return (NEW, OLD)

    receiver = dataclasses.replace(
        application.dependencies["receiver"], secrets=secrets, now_s=lambda: float(NOW)
    )
    async with client_for(application.replacing(receiver=receiver)) as client:

        async def call(header, body, content_type="application/json; charset=utf-8", copies=1):
            signatures = [] if header is None else [("Stripe-Signature", header.encode())] * copies
            headers = [("Content-Type", content_type), *signatures]
            return await client.post(PATH, headers=headers, content=body)

        yield call


async def kept(owner):
    return [row["payload"] for row in await owner.fetch("select payload from webhook_events")]


@pytest.mark.parametrize("header", GOOD_ONES.values(), ids=GOOD_ONES)
async def test_signed_body_is_stored_unchanged(send, owner, header):
    answer = await send(header, BODY)

    assert (answer.status_code, answer.json()) == (200, {"received": True, "duplicate": False})
    assert await kept(owner) == [BODY]


@pytest.mark.parametrize(("header", "body"), INVALID.values(), ids=INVALID)
async def test_invalid_signature_is_rejected(send, owner, header, body):
    assert_problem(await send(header, body), 400, "signature_invalid")
    assert await kept(owner) == []


@pytest.mark.parametrize("header", EXPIRED.values(), ids=EXPIRED)
async def test_expired_signature_is_rejected(send, owner, header):
    assert_problem(await send(header, BODY), 400, "signature_expired")
    assert await kept(owner) == []


@pytest.mark.parametrize("body", NO_EVENTS.values(), ids=NO_EVENTS)
async def test_signed_body_that_is_no_event_is_rejected(send, owner, body):
    assert_problem(await send(other(body), body), 400, "event_malformed")
    assert await kept(owner) == []


async def test_two_signature_headers_are_rejected(send, owner):
    assert_problem(await send(GOOD, BODY, copies=2), 400, "signature_invalid")
    assert await kept(owner) == []


async def test_signature_of_the_stripe_sdk_is_accepted(send):
    from stripe import WebhookSignature  # noqa: PLC0415  the import takes half a second

    header = WebhookSignature.generate_signature_header(BODY.decode(), NEW, NOW)

    assert (await send(header, BODY)).status_code == 200


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json; charset=latin-1", "x/y"])
async def test_content_type_is_ignored(send, content_type):
    assert (await send(GOOD, BODY, content_type)).status_code == 200


async def test_redelivered_event_is_a_duplicate(send, owner):
    await send(GOOD, BODY)

    answer = await send(other(at=NOW + 100), BODY)

    assert (answer.status_code, answer.json()) == (200, {"received": True, "duplicate": True})
    assert await owner.fetchval("select count(*) from webhook_events") == 1


async def test_event_with_a_known_id_and_other_content_is_a_duplicate(send, owner):
    changed = BODY.replace(b"in_1", b"in_2")
    await send(GOOD, BODY)

    answer = await send(other(changed), changed)

    assert answer.json()["duplicate"] is True
    assert await kept(owner) == [BODY]
    assert id_of(changed) == id_of(BODY)
