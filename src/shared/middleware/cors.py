"""CORS headers. They are part of HttpBoundary, so that frontends can read its error responses as well."""

from shared.middleware.request_id import HEADER as REQUEST_ID

Headers = list[tuple[bytes, bytes]]

METHODS = b"GET, POST, PUT, PATCH, DELETE"
REQUEST_HEADERS = (
    b"authorization, content-type, oslira-account, idempotency-key, if-match, if-none-match, last-event-id,"
    b" x-request-id"
)
EXPOSED_HEADERS = (
    REQUEST_ID
    + b", content-disposition, etag, location, retry-after, ratelimit, ratelimit-policy, idempotency-replayed"
)
PREFLIGHT_LIFETIME_S = b"600"


class Cors:
    def __init__(self, origins: tuple[str, ...]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def __bool__(self) -> bool:
        return bool(self._origins)

    def knows(self, origin: bytes) -> bool:
        return origin in self._origins

    def response_headers(self, origin: bytes) -> Headers:
        """Return Vary for unknown origins as well, because caches must separate responses by origin."""
        if not self.knows(origin):
            return [(b"vary", b"Origin")]
        return [
            (b"vary", b"Origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
        ]

    def preflight_headers(self) -> Headers:
        return [
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", REQUEST_HEADERS),
            (b"access-control-max-age", PREFLIGHT_LIFETIME_S),
        ]
