"""JWKS keys during rotations and outages, over real connections."""

import asyncio
import gzip

import pytest
from structlog.testing import capture_logs

from features.auth.domain.errors import IdentityUnavailable, TokenInvalid
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.verifier import JwtVerifier
from shared.errors import Unavailable
from tests.integration.identity.test_key_sets import BAD_DOCUMENTS
from tests.support import until
from tests.support.jwks_server import key_server
from tests.support.token_forge import AUDIENCE, ISSUER, KID, NOW_S, Smith, new_key, public_jwk

FRESH_S, COOLDOWN_S = 600.0, 10.0


class Clock:
    now_s = 1_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="module")
def smith():
    return Smith("ES256")


@pytest.fixture
async def issuer(smith):
    async with key_server() as issuer:
        issuer.publish(public_jwk(smith.key, "ES256"))
        yield issuer


@pytest.fixture
async def keys(issuer, clock):
    keys = JwksKeys(issuer.url, "ES256", fresh_s=FRESH_S, cooldown_s=COOLDOWN_S, timeout_s=10, now_s=clock)
    yield keys
    await keys.close()


@pytest.fixture
def verifier(keys):
    return JwtVerifier(keys, algorithm="ES256", issuer=ISSUER, audience=AUDIENCE, now_s=lambda: NOW_S)


@pytest.fixture
def logs():
    with capture_logs() as logs:
        yield logs


def events(logs):
    return [line["event"] for line in logs]


async def test_fresh_keys_are_fetched_once(verifier, issuer, smith, clock):
    for _ in range(3):
        await verifier.verify(smith.token())
    clock.now_s += FRESH_S - 1
    await verifier.verify(smith.token())

    assert issuer.paths == ["/jwks.json"]


async def test_concurrent_first_calls_share_a_fetch(verifier, issuer, smith):
    issuer.gate.clear()
    waiting = [asyncio.create_task(verifier.verify(smith.token())) for _ in range(64)]
    await until(lambda: issuer.paths)
    issuer.gate.set()

    assert len(await asyncio.gather(*waiting)) == 64
    assert len(issuer.paths) == 1


async def test_stale_keys_are_used_during_a_refresh(verifier, issuer, smith, clock):
    await verifier.verify(smith.token())
    clock.now_s += FRESH_S
    issuer.gate.clear()

    for _ in range(3):
        assert await verifier.verify(smith.token())  # although the issuer has not answered yet

    await until(lambda: len(issuer.paths) == 2)


async def test_new_key_is_fetched_for_the_first_token_with_its_kid(verifier, issuer, smith, clock):
    await verifier.verify(smith.token())
    new = new_key("ES256")
    issuer.publish(public_jwk(smith.key, "ES256"), public_jwk(new, "ES256", kid="new"))
    clock.now_s += COOLDOWN_S

    assert await verifier.verify(smith.token({"kid": "new"}, key=new))
    assert await verifier.verify(smith.token())
    assert verifier.generation == 0


async def test_64_concurrent_unknown_kids_cause_one_fetch(verifier, issuer, smith, clock):
    await verifier.verify(smith.token())
    clock.now_s += COOLDOWN_S
    issuer.gate.clear()
    tokens = [smith.token({"kid": f"unknown {number}"}) for number in range(64)]
    waiting = [asyncio.create_task(verifier.verify(token)) for token in tokens]
    await until(lambda: len(issuer.paths) == 2)
    issuer.gate.set()

    refusals = await asyncio.gather(*waiting, return_exceptions=True)

    assert {type(refusal) for refusal in refusals} == {TokenInvalid}
    assert len(issuer.paths) == 2


@pytest.mark.parametrize(("seconds", "fetches"), [(COOLDOWN_S - 0.1, 2), (COOLDOWN_S, 3)])
async def test_unknown_kids_cause_one_fetch_per_cooldown(verifier, issuer, smith, clock, seconds, fetches):
    await verifier.verify(smith.token())
    clock.now_s += COOLDOWN_S
    for wait_s in (0, seconds):
        clock.now_s += wait_s
        with pytest.raises(TokenInvalid):
            await verifier.verify(smith.token({"kid": "unknown"}))

    assert len(issuer.paths) == fetches


async def test_cancelled_caller_does_not_affect_the_others(verifier, issuer, smith):
    issuer.gate.clear()
    impatient = asyncio.create_task(verifier.verify(smith.token()))
    await until(lambda: issuer.paths)
    patient = asyncio.create_task(verifier.verify(smith.token()))
    impatient.cancel()
    await asyncio.wait({impatient})
    issuer.gate.set()

    assert await patient
    assert len(issuer.paths) == 1


async def test_removed_key_is_rejected_and_increments_the_generation(verifier, issuer, smith, clock, logs):
    new = new_key("ES256")
    await verifier.verify(smith.token())
    issuer.publish(public_jwk(new, "ES256", kid="new"))
    clock.now_s += COOLDOWN_S

    assert await verifier.verify(smith.token({"kid": "new"}, key=new))
    with pytest.raises(TokenInvalid):
        await verifier.verify(smith.token())

    assert verifier.generation == 1
    assert events(logs) == ["signing_key_removed"]


async def test_replaced_key_with_the_same_kid_counts_as_removed(verifier, issuer, smith, clock, keys):
    await verifier.verify(smith.token())
    issuer.publish(public_jwk(smith.strangers_key, "ES256"))
    clock.now_s += FRESH_S
    await verifier.verify(smith.token())

    await until(lambda: keys.generation == 1)

    with pytest.raises(TokenInvalid):
        await verifier.verify(smith.token())
    assert await verifier.verify(smith.forged())


async def test_empty_key_set_removes_all_keys(verifier, issuer, smith, clock, keys):
    await verifier.verify(smith.token())
    issuer.publish()
    clock.now_s += FRESH_S
    await verifier.verify(smith.token())

    await until(lambda: keys.generation == 1)

    with pytest.raises(IdentityUnavailable):
        await verifier.verify(smith.token())
    assert keys.failure == "no ES256 key in the document"


async def test_last_known_keys_are_used_during_an_outage_that_is_logged_once(
    verifier, issuer, smith, clock, keys, logs
):
    await verifier.verify(smith.token())
    await issuer.stop()
    for _ in range(3):
        clock.now_s += FRESH_S
        keys.failure = keys.failure and "before"
        assert await verifier.verify(smith.token())
        await until(lambda: keys.failure == "ConnectError")

    assert logs == [
        {
            "event": "signing_keys_not_loaded",
            "log_level": "warning",
            "reason": "ConnectError",
            "serving": 1,
        }
    ]
    assert verifier.generation == 0


async def test_every_outage_and_recovery_is_logged(verifier, issuer, smith, clock, keys, logs):
    await verifier.verify(smith.token())
    for _ in range(2):
        await issuer.stop()
        clock.now_s += FRESH_S
        await verifier.verify(smith.token())
        await until(lambda: keys.failure)
        await issuer.restart()
        clock.now_s += COOLDOWN_S
        await verifier.verify(smith.token())
        await until(lambda: not keys.failure)

    assert events(logs) == ["signing_keys_not_loaded", "signing_keys_loaded_again"] * 2


async def test_unreachable_issuer_raises_identity_unavailable(verifier, issuer, smith, clock):
    await issuer.stop()

    for _ in range(2):
        with pytest.raises(IdentityUnavailable) as refusal:
            await verifier.verify(smith.token())
    assert (refusal.value.code, isinstance(refusal.value, Unavailable)) == ("identity_unavailable", True)

    await issuer.restart()
    clock.now_s += COOLDOWN_S
    assert await verifier.verify(smith.token())


async def test_unreachable_issuer_is_requested_once_per_cooldown(verifier, issuer, smith):
    issuer.status = "503 Service Unavailable"

    for _ in range(3):
        with pytest.raises(IdentityUnavailable):
            await verifier.verify(smith.token())

    assert len(issuer.paths) == 1


async def test_malformed_token_is_rejected_without_a_fetch(verifier, issuer, smith):
    for token in ("garbage", smith.token({"alg": "none"}), smith.token({"crit": ["x"]})):
        with pytest.raises(TokenInvalid):
            await verifier.verify(token)

    assert issuer.paths == []


async def test_fetch_has_a_timeout(issuer):
    keys = JwksKeys(issuer.url, "ES256", timeout_s=0.05)
    issuer.gate.clear()

    with pytest.raises(IdentityUnavailable):
        await keys.find(KID)

    assert keys.failure in {"TimeoutError", "ReadTimeout"}
    await keys.close()


async def test_slow_response_of_the_issuer_times_out(issuer):
    keys = JwksKeys(issuer.url, "ES256", timeout_s=0.2)
    issuer.drips = True

    with pytest.raises(IdentityUnavailable):
        async with asyncio.timeout(30):
            await keys.find(KID)

    assert keys.failure == "TimeoutError"
    await keys.close()


async def test_redirect_is_not_followed(keys, issuer, smith):
    async with key_server() as elsewhere:
        elsewhere.publish(public_jwk(smith.key, "ES256"))
        issuer.status, issuer.headers = "302 Found", f"Location: {elsewhere.url}\r\n"

        with pytest.raises(IdentityUnavailable):
            await keys.find(KID)

    assert (elsewhere.paths, keys.failure) == ([], "status 302")


@pytest.mark.parametrize(("padding", "accepted"), [(60_000, True), (70_000, False), (5_000_000, False)])
async def test_document_size_is_limited_to_64_kilobytes(keys, issuer, padding, accepted):
    issuer.document += b" " * padding

    if accepted:
        assert await keys.find(KID)
    else:
        with pytest.raises(IdentityUnavailable):
            await keys.find(KID)
        assert keys.failure == "the document is too large"


async def test_compressed_document_is_not_decompressed(keys, issuer):
    issuer.document = gzip.compress(issuer.document + b" " * 10_000_000)
    issuer.headers = "Content-Encoding: gzip\r\n"

    with pytest.raises(IdentityUnavailable):
        await keys.find(KID)
    assert keys.failure == "not a JWKS document"


@pytest.mark.parametrize("document", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS.keys())
async def test_invalid_document_keeps_the_previous_keys(verifier, keys, issuer, smith, clock, document):
    await verifier.verify(smith.token())
    issuer.document = document
    clock.now_s += FRESH_S
    await verifier.verify(smith.token())

    await until(lambda: keys.failure)

    assert await verifier.verify(smith.token())
    assert verifier.generation == 0


@pytest.mark.parametrize(("others", "accepted"), [(0, True), (1, False)])
async def test_token_without_kid_is_accepted_with_a_single_key(verifier, issuer, smith, others, accepted):
    jwks = [public_jwk(new_key("ES256"), "ES256", kid=f"other {number}") for number in range(others)]
    issuer.publish(public_jwk(smith.key, "ES256"), *jwks)

    if accepted:
        assert await verifier.verify(smith.token({"kid": None}))
    else:
        with pytest.raises(TokenInvalid):
            await verifier.verify(smith.token({"kid": None}))


async def test_token_with_kid_is_not_verified_with_a_key_without_kid(verifier, issuer, smith):
    issuer.publish(public_jwk(smith.key, "ES256", kid=None))

    with pytest.raises(TokenInvalid):
        await verifier.verify(smith.token())
    assert await verifier.verify(smith.token({"kid": None}))
