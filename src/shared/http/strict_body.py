"""Strict decoding of request bodies directly into the handler's type: "1" is not a number.

Litestar would decode JSON into plain objects first and then convert them leniently.
"""

import re
from functools import cache
from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import ValidationException

_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401  any annotation of a handler
    return msgspec.json.Decoder(kind)


class StrictRequest(Request[Any, Any, Any]):
    async def json(self) -> Any:  # noqa: ANN401  Litestar's signature
        field = self.route_handler.parsed_data_field
        assert field is not None, "only handlers with a body ask for it"
        body = await self.body()
        if not body:
            raise _invalid("body", "A JSON body is needed")
        try:
            return _decoder(field.annotation).decode(body)
        except msgspec.ValidationError as error:
            message = str(error)
            at = _AT.search(message)
            raise _invalid((at and at["path"]) or "body", _AT.sub("", message)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _invalid("body", f"Not JSON: {error}") from None


def _invalid(field: str, message: str) -> ValidationException:
    return ValidationException(extra=[{"key": field, "message": message}])
