"""What a JSON Schema cannot say, said to schemathesis: rules between two fields, and about now.

Each changes a request that is allowed by its schema into another one that is allowed by its schema; what a
schema forbids stays as it was generated. The price: 1.0 is an integer to JSON Schema and none to our decoder,
and schemathesis does not get to send it. Loaded by the command line as SCHEMATHESIS_HOOKS.
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
USERNAMES_MAX = 100  # of the stage's plan
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
    """A dry run takes nobody's slot, so it names none."""
    if body.get("dry_run") is True and isinstance(body.get("slot"), str):
        body["dry_run"] = False


def _own_key(case):
    """An Idempotency-Key is for one request; what is generated repeats itself.

    Where the token is left out nobody looks at the key, and a changed header would bring the token back.
    """
    if getattr(case.meta.phase.data, "parameter", None) == "Authorization":
        return
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch(KEY_PATTERN, key):
        case.headers["Idempotency-Key"] = uuid.uuid4().hex


def _recent(case):
    """A report's window begins before it ends, and is not longer than three months."""
    if not case.path.startswith("/v1/admin/reports/"):
        return
    query = case.query or {}
    for name, days in (("since", 2), ("until", 1)):
        try:
            if datetime.fromisoformat(query[name]).tzinfo is not None:
                query[name] = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        except (KeyError, TypeError, ValueError):
            continue  # not there, or no instant: left as it is


def _of_its_sort(case):
    """A cursor of a list with several sorts belongs to the one that it was made for."""
    query = case.query or {}
    try:
        sort = bytes.fromhex(query["cursor"]).decode().removeprefix("s").partition(":")[0]
    except (KeyError, TypeError, ValueError):
        return  # not there, or no cursor: left as it is
    if sort in SORTS and query.get("sort", sort) in SORTS:
        query["sort"] = sort


def _whole(value):
    """To a JSON Schema 1.0 is an integer; to the decoder an integer is written as one."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _coming(body):
    """What expires, expires in the future, and an API key within five years."""
    try:
        instant = datetime.fromisoformat(body["expires_at"])
        if instant.tzinfo is not None:
            years = 1 + instant.year % EXPIRY_YEARS_MAX
            body["expires_at"] = (datetime.now(UTC) + timedelta(days=365 * years)).isoformat()
    except (KeyError, TypeError, ValueError):
        return  # not there, or no instant: left as it is


def _in_range(body):
    """A range of events begins before it ends, and is not longer than a month."""
    for name, days in (("since", 2), ("until", 1)):
        try:
            if datetime.fromisoformat(body[name]).tzinfo is not None:
                body[name] = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        except (KeyError, TypeError, ValueError):
            continue  # not there, or no instant: left as it is


def _known(body, noun):
    """Which types of movement there are is data, kept in a table."""
    word = body.get("transaction_type")
    if noun in TRANSACTION_TYPES and isinstance(word, str) and re.fullmatch("[a-z][a-z_]{0,39}", word):
        body["transaction_type"] = TRANSACTION_TYPES[noun]


def _ordered(ideal_customer):
    """The least is not above the most; sent alone, either might contradict what is kept."""
    if not isinstance(ideal_customer, dict):
        return
    sent = [number for name in FOLLOWERS if type(number := ideal_customer.get(name)) is int]
    if sent:
        others = [ideal_customer[name] for name in FOLLOWERS if name in ideal_customer]
        if len(others) == len(sent):
            ideal_customer["followers_min"], ideal_customer["followers_max"] = min(sent), max(sent)


def _named(body):
    """What a username is takes more than a pattern, and how many there may be depends on the plan."""
    if _is_text(body.get("username")) and body["username"]:
        body["username"] = f"user{uuid.uuid4().hex[:12]}"
    rows = body.get("usernames")
    if isinstance(rows, list) and 0 < len(rows) <= ROWS_MAX and all(_is_text(row) for row in rows):
        body["usernames"] = [f"user{uuid.uuid4().hex[:12]}" for _ in rows[:USERNAMES_MAX]]


def _sold(body):
    """What is sold is data, kept in a table; and whoever has paid comes back to the frontend."""
    for field, name in SOLD.items():
        if isinstance(body.get(field), str) and re.fullmatch("[a-z][a-z_]{0,39}", body[field]):
            body[field] = name
    for field in ("success_url", "cancel_url", "return_url"):
        if isinstance(body.get(field), str) and 1 <= len(body[field]) <= ADDRESS_LENGTH_MAX:
            body[field] = FRONTEND


def _one(body):
    """Either a plan or a pack."""
    if all(body.get(field) in (None, name) for field, name in SOLD.items()):
        body["pack"] = None if body.get("plan") else SOLD["pack"]


def _reachable(body):
    """Whether an address is one of the internet takes more than a pattern; an instant has a year that UTC has
    as well.
    """
    if isinstance(body.get("url"), str) and re.fullmatch(URL_PATTERN, body["url"]):
        body["url"] = f"https://hooks.example/{uuid.uuid4().hex}"
    for name in ("since", "until"):
        try:
            if datetime.fromisoformat(body[name]).tzinfo is not None:
                body[name] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        except (KeyError, TypeError, ValueError):
            continue  # not there, or no instant: left as it is


def _is_text(value):
    return isinstance(value, str) and len(value) <= USERNAME_LENGTH_MAX
