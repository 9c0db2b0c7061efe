"""Schemathesis hooks for rules that JSON Schema cannot express: relations between fields, and relations to
the current time.

Each hook changes a request that its schema allows into another one that its schema allows; invalid requests
stay as generated. One consequence: 1.0 is an integer in JSON Schema but not for our decoder, so schemathesis
never sends it. The command line loads this module as SCHEMATHESIS_HOOKS.
"""

import re
import uuid
from datetime import UTC, datetime, timedelta

import schemathesis

KEY_PATTERN = "^[!-~]{16,255}$"
EXPIRY_YEARS_MAX = 4
TRANSACTION_TYPES = {"grants": "admin_grant", "holds": "admin_charge"}
SORTS = ("-last_analysed_at", "-score", "score", "username", "-followers")
FOLLOWERS = ("followers_min", "followers_max")
USERNAME_LENGTH_MAX = 300
ROWS_MAX = 500
SOLD = {"plan": "growth", "pack": "small"}
FRONTEND = "http://127.0.0.1:3000/billing"
ADDRESS_LENGTH_MAX = 2_000
USERNAMES_MAX = 100  # limit of the plan in the test stage
URL_PATTERN = r"https?://[A-Za-z0-9.\[\]:-]+([/?][!-~]*)?"


@schemathesis.hook
def before_call(context, case, kwargs):
    del context, kwargs
    _own_key(case)
    _recent(case)
    _of_its_sort(case)
    if isinstance(case.body, dict):
        case.body = _whole(case.body)
        _coming(case.body)
        _in_range(case.body)
        _known(case.body, case.path.rpartition("/")[2])
        _ordered(case.body.get("ideal_customer"))
        if case.path.startswith("/v1/analyses"):
            _named(case.body)
        if case.path.startswith("/v1/billing"):
            _sold(case.body)
        if case.path == "/v1/billing/checkout":
            _one(case.body)
        if case.path.startswith("/v1/webhooks/endpoints"):
            _reachable(case.body)
        if case.path.startswith("/v1/admin/cron"):
            _for_real(case.body)


def _for_real(body):
    """A dry run must not name a slot."""
    if body.get("dry_run") is True and isinstance(body.get("slot"), str):
        body["dry_run"] = False


def _own_key(case):
    """Replaces the Idempotency-Key, because generated keys repeat and a key is valid for one request.

    Without a token the key is ignored, and a changed header would restore the token.
    """
    if getattr(case.meta.phase.data, "parameter", None) == "Authorization":
        return
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch(KEY_PATTERN, key):
        case.headers["Idempotency-Key"] = uuid.uuid4().hex


def _recent(case):
    """A report's window must begin before it ends and last at most three months."""
    if not case.path.startswith("/v1/admin/reports/"):
        return
    query = case.query or {}
    for name, days in (("since", 2), ("until", 1)):
        try:
            if datetime.fromisoformat(query[name]).tzinfo is not None:
                query[name] = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        except (KeyError, TypeError, ValueError):
            continue  # missing or not a date-time: unchanged


def _of_its_sort(case):
    """A cursor is valid only for the sort that it was created with."""
    query = case.query or {}
    try:
        sort = bytes.fromhex(query["cursor"]).decode().removeprefix("s").partition(":")[0]
    except (KeyError, TypeError, ValueError):
        return  # missing or not a cursor: unchanged
    if sort in SORTS and query.get("sort", sort) in SORTS:
        query["sort"] = sort


def _whole(value):
    """JSON Schema accepts 1.0 as an integer; the decoder does not."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _coming(body):
    """An expiry must be in the future, and that of an API key within five years."""
    try:
        instant = datetime.fromisoformat(body["expires_at"])
        if instant.tzinfo is not None:
            years = 1 + instant.year % EXPIRY_YEARS_MAX
            body["expires_at"] = (datetime.now(UTC) + timedelta(days=365 * years)).isoformat()
    except (KeyError, TypeError, ValueError):
        return  # missing or not a date-time: unchanged


def _in_range(body):
    """A range of events must begin before it ends and last at most one month."""
    for name, days in (("since", 2), ("until", 1)):
        try:
            if datetime.fromisoformat(body[name]).tzinfo is not None:
                body[name] = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        except (KeyError, TypeError, ValueError):
            continue  # missing or not a date-time: unchanged


def _known(body, noun):
    """The allowed transaction types are rows of a table."""
    word = body.get("transaction_type")
    if noun in TRANSACTION_TYPES and isinstance(word, str) and re.fullmatch("[a-z][a-z_]{0,39}", word):
        body["transaction_type"] = TRANSACTION_TYPES[noun]


def _ordered(ideal_customer):
    """The minimum must not exceed the maximum; one sent alone could contradict the stored other one."""
    if not isinstance(ideal_customer, dict):
        return
    sent = [number for name in FOLLOWERS if type(number := ideal_customer.get(name)) is int]
    if sent:
        others = [ideal_customer[name] for name in FOLLOWERS if name in ideal_customer]
        if len(others) == len(sent):
            ideal_customer["followers_min"], ideal_customer["followers_max"] = min(sent), max(sent)


def _named(body):
    """A valid username needs more than a pattern, and the plan limits their number."""
    if _is_text(body.get("username")) and body["username"]:
        body["username"] = f"user{uuid.uuid4().hex[:12]}"
    rows = body.get("usernames")
    if isinstance(rows, list) and 0 < len(rows) <= ROWS_MAX and all(_is_text(row) for row in rows):
        body["usernames"] = [f"user{uuid.uuid4().hex[:12]}" for _ in rows[:USERNAMES_MAX]]


def _sold(body):
    """Plans and packs are rows of a table, and return URLs must lead to the frontend."""
    for field, name in SOLD.items():
        if isinstance(body.get(field), str) and re.fullmatch("[a-z][a-z_]{0,39}", body[field]):
            body[field] = name
    for field in ("success_url", "cancel_url", "return_url"):
        if isinstance(body.get(field), str) and 1 <= len(body[field]) <= ADDRESS_LENGTH_MAX:
            body[field] = FRONTEND


def _one(body):
    """Exactly one of plan and pack is allowed."""
    if all(body.get(field) in (None, name) for field, name in SOLD.items()):
        body["pack"] = None if body.get("plan") else SOLD["pack"]


def _reachable(body):
    """A public URL needs more than a pattern, and a date-time must remain valid after conversion to UTC."""
    if isinstance(body.get("url"), str) and re.fullmatch(URL_PATTERN, body["url"]):
        body["url"] = f"https://hooks.example/{uuid.uuid4().hex}"
    for name in ("since", "until"):
        try:
            if datetime.fromisoformat(body[name]).tzinfo is not None:
                body[name] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        except (KeyError, TypeError, ValueError):
            continue  # missing or not a date-time: unchanged


def _is_text(value):
    return isinstance(value, str) and len(value) <= USERNAME_LENGTH_MAX
