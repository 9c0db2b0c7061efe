"""Format of API keys: issued keys are readable, all other texts are rejected."""

import re
import string
import uuid
import zlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.auth.domain.api_keys import LIFETIME_MAX, check_expiry, issue, read_key
from features.auth.domain.errors import ApiKeyInvalid, ExpiryInvalid
from tests.support import NOON

KEY = issue(uuid.UUID("7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11"), "live").text
BODY, CHECKSUM = KEY[:-6], KEY[-6:]


@given(st.uuids(), st.sampled_from(["live", "test"]))
def test_issued_key_reads_back(key_id, mode):
    issued = issue(key_id, mode)

    presented = read_key(issued.text)

    assert (presented.id, presented.mode) == (key_id, mode)
    assert presented.secret_hash == issued.secret_hash
    assert re.fullmatch(rf"osl_{mode}_[0-9A-Za-z]{{22}}_[0-9A-Za-z]{{38}}", issued.text)


def test_secrets_are_unique():
    key_id = uuid.uuid4()

    assert len({issue(key_id, "live").text for _ in range(100)}) == 100


HOSTILE = {
    "empty": "",
    "the prefix alone": "osl_",
    "no secret": "osl_live_",
    "another prefix": "sk_live_" + KEY[9:],
    "upper-case prefix": "OSL_LIVE_" + KEY[9:],
    "another mode": KEY.replace("live", "prod"),
    "the other mode": KEY.replace("live", "test"),
    "one short": KEY[:-1],
    "one long": KEY + "0",
    "no checksum": BODY,
    "zero checksum": BODY + "000000",
    "checksum reversed": BODY + CHECKSUM[::-1],
    "blank before": " " + KEY,
    "blank after": KEY + " ",
    "line end": KEY + "\n",
    "carriage return": KEY + "\r\nX-Evil: 1",
    "NUL": KEY[:-1] + "\0",
    "full-width digit": KEY[:-1] + "\uff11",
    "Arabic digit": KEY[:9] + "\u0661" + KEY[10:],
    "dash": KEY.replace("_", "-"),
    "quote": KEY[:20] + "'" + KEY[21:],
    "SQL": "osl_live_' or 1=1 --_" + "0" * 38,
    "path": "osl_live_../../../../etc/passwd_" + "0" * 38,
    "percent": "osl_live_%00%00%00%00%00%00%00_" + "0" * 38,
    "number too large": "osl_live_" + "z" * 22 + "_" + "0" * 38,
    "huge": "osl_live_" + "0" * 8_000,
    "swapped parts": "_".join([*KEY.split("_")[:2], *KEY.split("_")[:1:-1]]),
    "doubled": KEY + KEY,
    "cyrillic": KEY.replace("o", "\u043e", 1),
    "emoji": KEY[:-1] + "\U0001f511",
    "surrogate": KEY[:-1] + "\ud800",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_malformed_key_is_rejected(text):
    with pytest.raises(ApiKeyInvalid):
        read_key(text)


def test_id_above_128_bits_is_rejected_with_a_correct_checksum():
    text = "osl_live_" + "z" * 22 + "_" + "0" * 32

    with pytest.raises(ApiKeyInvalid):
        read_key(text + checksum(text))


def checksum(text):
    """Independent computation of the checksum."""
    alphabet = string.digits + string.ascii_uppercase + string.ascii_lowercase
    number = zlib.crc32(text.encode())
    return "".join(alphabet[number // 62**place % 62] for place in range(5, -1, -1))


@pytest.mark.parametrize("position", range(len(KEY)))
def test_one_wrong_character_is_detected(position):
    other = "1" if KEY[position] != "1" else "2"

    with pytest.raises(ApiKeyInvalid):
        read_key(KEY[:position] + other + KEY[position + 1 :])


@pytest.mark.parametrize("lifetime", [timedelta(seconds=1), timedelta(days=365), LIFETIME_MAX])
def test_future_expiry_is_accepted(lifetime):
    assert check_expiry(NOON + lifetime, NOON) is None
    assert check_expiry(None, NOON) is None


@pytest.mark.parametrize(
    "lifetime", [timedelta(0), timedelta(seconds=-1), LIFETIME_MAX + timedelta(seconds=1)]
)
def test_past_or_too_late_expiry_is_rejected(lifetime):
    with pytest.raises(ExpiryInvalid):
        check_expiry(NOON + lifetime, NOON)
