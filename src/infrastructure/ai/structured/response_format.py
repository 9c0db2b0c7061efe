"""Response format: schema and validating decoder of a response type."""

from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from infrastructure.ai.structured.json_schema import answer_schema
from shared.middleware.json_depth import depth_exceeds

T = TypeVar("T")

ANSWER_BYTES_MAX = 1_000_000
ANSWER_DEPTH_MAX = 32
FORMS_MAX = 256


class Malformed(ValueError):
    """Validation error; its text is sent to the model for the repair."""


class ResponseFormat(Generic[T]):
    def __init__(self, answer: type[T]) -> None:
        self.name, self.schema = answer_schema(answer)
        self.schema_bytes = msgspec.json.encode(self.schema, order="deterministic")
        self._decoder = msgspec.json.Decoder(answer)

    def decode(self, text: str) -> T:
        try:
            body = text.encode()
            if len(body) > ANSWER_BYTES_MAX:
                raise Malformed(f"The answer is longer than {ANSWER_BYTES_MAX} bytes.")
            if depth_exceeds(body, ANSWER_DEPTH_MAX):
                raise Malformed(f"The answer is nested deeper than {ANSWER_DEPTH_MAX} levels.")
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            raise Malformed(f"The answer does not fit the schema: {error}") from None
        except (msgspec.DecodeError, UnicodeError):
            raise Malformed("The answer is not one JSON document.") from None


@lru_cache(maxsize=FORMS_MAX)
def _form_of(answer: type[Any]) -> ResponseFormat[Any]:
    return ResponseFormat(answer)


def form_of(answer: type[T]) -> ResponseFormat[T]:
    return cast("ResponseFormat[T]", _form_of(answer))
