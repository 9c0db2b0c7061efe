"""Strict validation of path and query parameters against the OpenAPI document.

Litestar is lenient: it reads `limit=1e2` as 100 and `at=1` as an instant of 1970, accepts a UUID in braces,
uses only one value of a repeated parameter and silently ignores an unknown one.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from litestar.connection import ASGIConnection
from litestar.enums import ParamType
from litestar.exceptions import NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.params import ParameterKwarg
from litestar.types import HTTPScope
from litestar.typing import FieldDefinition
from litestar.utils.signature import ParsedSignature

from shared.ids import UUID_TEXT

_DATE_TIME = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_SPELLINGS: dict[Any, tuple[str, str]] = {
    int: ("-?(0|[1-9][0-9]*)", "Expected a whole number such as 10"),
    bool: ("true|false", "Expected true or false"),
    datetime: (_DATE_TIME, "Expected a time such as 2026-11-01T00:00:00Z"),
    UUID: (UUID_TEXT.pattern, "Expected a UUID"),
}

_PLAIN_NAME = re.compile("[A-Za-z_-]{1,40}")

Spelling = tuple[re.Pattern[str], str]


def check_address(scope: HTTPScope) -> None:
    """Raise Litestar's own exceptions for an invalid URL. A URL without parameters costs nothing."""
    if scope["path_params"]:
        _check_ids(scope)
    if scope["query_string"]:
        _check_query(scope)


def _check_ids(scope: HTTPScope) -> None:
    for place, text in zip(scope["path_template"].split("/"), scope["path"].split("/"), strict=False):
        is_id = place.startswith("{") and isinstance(scope["path_params"][place[1:-1]], UUID)
        if is_id and not UUID_TEXT.fullmatch(text):
            raise NotFoundException


def _check_query(scope: HTTPScope) -> None:
    known = _query_of(scope["route_handler"])
    seen: set[str] = set()
    # This caches the parsed query, so the handler does not parse it again.
    for name, text in ASGIConnection[Any, Any, Any, Any](scope).query_params.multi_items():
        if name not in known:
            # Do not repeat the name: it may be a misplaced secret.
            raise _invalid(name if _PLAIN_NAME.fullmatch(name) else "query", "Unknown parameter")
        if name in seen:
            raise _invalid(name, "Sent more than once")
        seen.add(name)
        spelling = known[name]
        if spelling and not spelling[0].fullmatch(text):
            raise _invalid(name, spelling[1])


@cache
def _query_of(handler: BaseRouteHandler) -> dict[str, Spelling | None]:
    """Return the query parameters of a handler with the accepted spelling of each."""
    return {
        field.kwarg_definition.name or name: _spelling(field)
        for signature in _signatures(handler)
        for name, field in signature.parameters.items()
        if isinstance(field.kwarg_definition, ParameterKwarg)
        and field.kwarg_definition.param_type is ParamType.QUERY
    }


def _signatures(handler: BaseRouteHandler) -> Iterator[ParsedSignature]:
    """Yield the signatures of the handler and of the dependencies it uses."""
    yield handler.parsed_fn_signature
    for name, provide in handler.resolve_dependencies().items():
        if name in handler.parsed_fn_signature.parameters:
            yield provide.parsed_fn_signature


def _spelling(field: FieldDefinition) -> Spelling | None:
    """Return the accepted spelling; None: any text, which the handler validates."""
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    kind = field.annotation if get_origin(field.annotation) is Literal else kinds[0]
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return re.compile("|".join(map(re.escape, words))), f"Expected one of {', '.join(words)}"
    if kind not in _SPELLINGS:
        return None
    pattern, message = _SPELLINGS[kind]
    return re.compile(pattern), message


def _invalid(name: str, message: str) -> ValidationException:
    return ValidationException(extra=[{"key": name, "message": message}])
