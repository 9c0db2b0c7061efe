"""Tokens that must be rejected, made from public data or from a genuine token."""

import base64
import json
import zlib

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tests.support.token_forge import ISSUER, KID, NOW_S, claims_with, encoded, new_key

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
FAR_S = 2**40
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
NEXT = dict(zip(LETTERS, LETTERS[1:] + LETTERS[0], strict=True))


def in_asn1(signature):
    half = len(signature) // 2
    return encode_dss_signature(
        int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
    )


def re_signed(token, change):
    text, _, signature = token.rpartition(".")
    return f"{text}.{encoded(change(base64.urlsafe_b64decode(signature + '==')))}"


FORGED = {
    **{
        f"alg {name!r} unsigned": lambda smith, name=name: smith.with_signature(b"", alg=name)
        for name in ("none", "None", "NONE", "nOnE", "none ", "", None, 0, True, ["none"], {})
    },
    **{
        f"alg {name!r} with a signature": lambda smith, name=name: smith.token({"alg": name})
        for name in ("none", "None", "es256", "rs256", "hs256", "ES256 ", "ES256K", "PS256", "EdDSA", "dir")
    },
    **{
        f"alg is a list of {name}": lambda smith, name=name: smith.token({"alg": [name]})
        for name in ("ES256", "RS256", "HS256")
    },
    **{
        f"hmac with known text {number}": lambda smith, number=number: smith.by_hmac(
            smith.known_texts[number]
        )
        for number in range(5)
    },
    **{
        f"hmac with known text {number}, alg kept": lambda smith, number=number: smith.by_hmac(
            smith.known_texts[number], alg=smith.algorithm
        )
        for number in range(5)
    },
    "alg left out": lambda smith: smith.token({"alg": None}),
    "stranger's key": lambda smith: smith.forged(),
    "stranger's key without kid": lambda smith: smith.forged({"kid": None}),
    "stranger's key with a kid of its own": lambda smith: smith.forged({"kid": "stranger"}),
    "stranger's jwk": lambda smith: smith.forged({"jwk": smith.strangers_jwk}),
    "stranger's jku": lambda smith: smith.forged({"jku": "https://evil.test/jwks.json"}),
    "stranger's jku beside the issuer's": lambda smith: smith.forged({"jku": f"{ISSUER}@evil.test"}),
    "stranger's x5u": lambda smith: smith.forged({"x5u": "https://evil.test/chain.pem"}),
    "stranger's x5c": lambda smith: smith.forged({"x5c": [base64.b64encode(b"certificate").decode()]}),
    "stranger's x5t": lambda smith: smith.forged({"x5t": encoded(b"0" * 20), "x5t#S256": encoded(b"0" * 32)}),
    "stranger's embedded key with its kid": lambda smith: smith.forged(
        {"jwk": smith.strangers_jwk, "kid": "stranger"}
    ),
    **{
        f"{algorithm} with a stranger's key": lambda smith, algorithm=algorithm: smith.token(
            key=new_key(algorithm), algorithm=algorithm
        )
        for algorithm in ("ES256", "RS256", "HS256")
    },
    "ES384": lambda smith: smith.token(key=ec.generate_private_key(ec.SECP384R1()), algorithm="ES384"),
    "ES256K": lambda smith: smith.token(key=ec.generate_private_key(ec.SECP256K1()), algorithm="ES256K"),
    "another curve under our alg": lambda smith: smith.token(
        {"alg": smith.algorithm}, key=ec.generate_private_key(ec.SECP256K1()), algorithm="ES256K"
    ),
    "signature stripped": lambda smith: smith.with_signature(b""),
    "signature of one byte": lambda smith: smith.with_signature(b"\0"),
    "signature of 64 zeros": lambda smith: smith.with_signature(bytes(64)),
    "signature of 32 zeros": lambda smith: smith.with_signature(bytes(32)),
    "signature of 256 zeros": lambda smith: smith.with_signature(bytes(256)),
    "r = s = 0 in ASN.1": lambda smith: smith.with_signature(encode_dss_signature(0, 0)),
    "r = s = n": lambda smith: smith.with_signature(ORDER.to_bytes(32, "big") * 2),
    "r = 1, s = 1": lambda smith: smith.with_signature((bytes(31) + b"\1") * 2),
    "signature of another token": lambda smith: smith.with_signature(
        base64.urlsafe_b64decode(smith.token(claims=claims_with(sub="x")).rpartition(".")[2] + "==")
    ),
}

MANGLED = {
    "truncated by a character": lambda token: token[:-1],
    "truncated by half": lambda token: token[: len(token) // 2],
    "with its last character changed": lambda token: token[:-1] + NEXT[token[-1]],
    "signature doubled": lambda token: token + token.rpartition(".")[2],
    "signature in ASN.1": lambda token: re_signed(token, in_asn1),
    "signature padded": lambda token: token + "=" * (-len(token.rpartition(".")[2]) % 4 or 4),
    "header padded": lambda token: token.replace(".", "==.", 1),
    "payload padded": lambda token: "==.".join(token.rsplit(".", 1)),
    "base64 of the other alphabet": lambda token: token.replace(".", "+.", 1),
    "space before": lambda token: f" {token}",
    "space after": lambda token: f"{token} ",
    "newline after": lambda token: f"{token}\n",
    "newline inside": lambda token: f"{token[:-8]}\n{token[-8:]}",
    "nul after": lambda token: f"{token}\0",
    "tab around the dot": lambda token: token.replace(".", "\t.", 1),
    "letters of another script": lambda token: token.replace("e", "\u0435", 1),
    "digits of another script": lambda token: f"{token}\u0663",
    "zero-width space": lambda token: f"\u200b{token}",
    "lone surrogate": lambda token: f"{token}\ud800",
    "full-width dot": lambda token: token.replace(".", "\uff0e", 1),
    "bytes beyond ascii": lambda token: f"\xff\xfe{token}",
    "scheme twice": lambda token: f"Bearer {token}",
    "two tokens": lambda token: f"{token},{token}",
    "four parts": lambda token: f"{token}.e30",
    "five parts, as JWE has": lambda token: f"{token}.e30.e30",
    "a dot more": lambda token: f"{token}.",
    "a dot before": lambda token: f".{token}",
    "no header": lambda token: "." + token.partition(".")[2],
    "no payload": lambda token: "..".join(token.split(".")[::2]),
    "two parts": lambda token: token.rpartition(".")[0],
    "one part": lambda token: token.replace(".", ""),
    "parts in another order": lambda token: ".".join(reversed(token.split("."))),
    "only dots": lambda _: "..",
    "empty": lambda _: "",
    "blank": lambda _: "   ",
    "json serialization": lambda token: json.dumps(
        dict(zip(("protected", "payload", "signature"), token.split("."), strict=True))
    ),
    "claims exchanged": lambda token: ".".join(
        [token.split(".")[0], encoded(claims_with(role="service_role")), token.split(".")[2]]
    ),
    "header exchanged": lambda token: ".".join([encoded({"alg": "none"}), *token.split(".")[1:]]),
    "a megabyte": lambda token: token + "A" * 1_000_000,
}

HEADERS = {
    **{f"crit {crit}": {"crit": crit} for crit in (["exp"], ["x"], ["b64"], ["alg"], [], "exp", 1)},
    "b64 false": {"b64": False},
    "b64 false and critical": {"b64": False, "crit": ["b64"]},
    "b64 true and critical": {"b64": True, "crit": ["b64"]},
    "compressed": {"zip": "DEF"},
    "encrypted": {"enc": "A256GCM"},
    **{f"typ {kind!r}": {"typ": kind} for kind in ("dpop+jwt", "logout+jwt", "JWE", "JOSE", "", 1, ["JWT"])},
    **{f"kid {kid!r:.9}": {"kid": kid} for kid in ("", "k" * 3_000, 1, True, 1.5, [KID], {"kid": KID})},
}

KIDS = [
    "../../../../dev/null", "/etc/passwd", "file:///etc/passwd", "' or 1=1 --", "' union select 'x",
    "https://evil.test/key", "the-key\0", "\0", "THE-KEY", " the-key", "the-key ", "\ud800", "| id",
    "${jndi:ldap://evil.test}", "{{7*7}}", "\r\nX: y",
]  # fmt: skip

CLAIMS = [
    {"aud": "other-audience"}, {"aud": ["other-audience"]}, {"aud": []}, {"aud": ""}, {"aud": 1},
    {"aud": None},
    {"aud": {"authenticated": True}}, {"aud": [["authenticated"]]}, {"aud": "authenticated "},
    {"aud": "AUTHENTICATED"},
    {"iss": "https://evil.test"}, {"iss": f"{ISSUER}/"}, {"iss": ISSUER.upper()}, {"iss": [ISSUER]},
    {"iss": ""}, {"iss": 1}, {"iss": None}, {"iss": f"{ISSUER}.evil.test"}, {"iss": ISSUER[:-1]},
    {"exp": None}, {"exp": "never"}, {"exp": str(NOW_S + 60)}, {"exp": []}, {"exp": {}}, {"exp": True},
    {"exp": float(NOW_S + 60)}, {"exp": NOW_S + 60.5}, {"exp": float("inf")}, {"exp": float("nan")},
    {"exp": float("-inf")}, {"exp": -1}, {"exp": 0}, {"exp": -(2**70)}, {"exp": NOW_S - 31}, {"exp": FAR_S},
    {"exp": 2**53}, {"exp": 2**63}, {"exp": 2**70}, {"exp": 2**2_000}, {"exp": 1e300}, {"exp": 4e9},
    {"exp": NOW_S + 10 * 366 * 86_400}, {"exp": NOW_S * 1_000},
    {"nbf": NOW_S + 31}, {"nbf": FAR_S}, {"nbf": "tomorrow"}, {"nbf": []}, {"nbf": True},
    {"nbf": float("nan")}, {"nbf": float("inf")}, {"nbf": 2**2_000},
    {"iat": None}, {"iat": NOW_S + 31}, {"iat": FAR_S}, {"iat": "yesterday"}, {"iat": str(NOW_S)},
    {"iat": 1.5, "exp": 2**2_000},
    {"iat": []}, {"iat": float("nan")}, {"iat": float("inf")}, {"iat": float("-inf")}, {"iat": -(2**2_000)},
    {"sub": None}, {"sub": ""}, {"sub": "ada"}, {"sub": 1}, {"sub": []}, {"sub": "00000000-0000-0000-0000"},
    {"sub": "../admin"}, {"sub": "' or 1=1 --"},
    {"role": None}, {"role": "anon"}, {"role": "service_role"}, {"role": "postgres"}, {"role": ""},
    {"role": ["authenticated"]}, {"role": "Authenticated"}, {"role": "authenticated\0"},
    {"is_anonymous": True}, {"is_anonymous": "false"}, {"is_anonymous": 1},
    {"email": 1}, {"email": "\0@example.com"}, {"email": "\ud800@example.com"},
    {"app_metadata": "operator"}, {"app_metadata": ["operator"]},
    {"user_metadata": {"name": "\0"}}, {"user_metadata": {"name": "\ud800"}}, {"\0": 1},
    {"x": "x" * 10_000},
]  # fmt: skip

PAYLOADS = {
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "text": b'"claims"',
    "no utf-8": b"\xff\xfe",
    "cut off": b'{"exp":',
    "nested deep": b"[" * 3_000,
    "nested deep in an object": b'{"a":' * 900,
    "compressed": zlib.compress(json.dumps(claims_with()).encode()),
    "digits without end": b'{"exp": 1' + b"0" * 5_000 + b"}",
}

RAW_HEADERS = {
    "alg twice": b'{"alg": "none", "alg": "%s", "kid": "the-key"}',
    "alg twice, the other way": b'{"alg": "%s", "kid": "the-key", "alg": "none"}',
    "kid twice": b'{"alg": "%s", "kid": "../x", "kid": "the-key"}',
    "crit and crit again": b'{"alg": "%s", "kid": "the-key", "crit": ["x"], "crit": []}',
    "a list": b'["%s"]',
    "text": b'"%s"',
    "null": b"null",
    "cut off": b'{"alg": "%s"',
    "no utf-8": b'\xff{"alg": "%s"}',
    "nested deep": b'{"alg": "%s", "x": ' + b"[" * 3_000,
    "comment": b'{"alg": "%s" /* */}',
    "digits without end": b'{"alg": "%s", "x": 1' + b"0" * 5_000 + b"}",
}

# Non-canonical encodings of the header and payload of a genuine token.
SPELLINGS = {
    "header padded": lambda header, payload: (header + "=" * (-len(header) % 4 or 4), payload),
    "payload padded": lambda header, payload: (header, payload + "=" * (-len(payload) % 4 or 4)),
    "newline in the header": lambda header, payload: (header[:8] + "\n" + header[8:], payload),
    "newline in the payload": lambda header, payload: (header, payload[:8] + "\n" + payload[8:]),
    "junk in the header": lambda header, payload: (header[:8] + "!" + header[8:], payload),
    "junk in the payload": lambda header, payload: (header, payload[:8] + "!" + payload[8:]),
    "nul after the payload": lambda header, payload: (header, payload + "\0"),
}
