"""Paths and queries taken exactly as the document describes them.

Litestar is lenient: `limit=1e2` is 100 to it, `at=1` an instant of 1970, a UUID may stand in braces, a
parameter sent twice counts once, and one that nobody knows is dropped without a word.
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
    """Raises what Litestar raises of a wrong address. Where there is nothing to check it costs nothing."""
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
    # The handler reads the same parsed query: it is not parsed twice.
    for name, text in ASGIConnection[Any, Any, Any, Any](scope).query_params.multi_items():
        if name not in known:
            # A secret in the wrong place is not repeated.
            raise _invalid(name if _PLAIN_NAME.fullmatch(name) else "query", "Unknown parameter")
        if name in seen:
            raise _invalid(name, "Sent more than once")
        seen.add(name)
        spelling = known[name]
        if spelling and not spelling[0].fullmatch(text):
            raise _invalid(name, spelling[1])


@cache
def _query_of(handler: BaseRouteHandler) -> dict[str, Spelling | None]:
    """The parameters that a handler takes from the query, and how each has to be written."""
    return {
        field.kwarg_definition.name or name: _spelling(field)
        for signature in _signatures(handler)
        for name, field in signature.parameters.items()
        if isinstance(field.kwarg_definition, ParameterKwarg)
        and field.kwarg_definition.param_type is ParamType.QUERY
    }


def _signatures(handler: BaseRouteHandler) -> Iterator[ParsedSignature]:
    """The handler's own, and those of the dependencies that it asks for."""
    yield handler.parsed_fn_signature
    for name, provide in handler.resolve_dependencies().items():
        if name in handler.parsed_fn_signature.parameters:
            yield provide.parsed_fn_signature


def _spelling(field: FieldDefinition) -> Spelling | None:
    """None: any text, for the handler to judge."""
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
