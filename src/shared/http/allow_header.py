"""The Allow header and the response to OPTIONS.

Litestar's own OPTIONS response lists only the methods of a controller's first handler.
"""

from collections.abc import Iterable
from http import HTTPStatus

from litestar.routes import HTTPRoute
from litestar.types import HTTPScope, Send


def allow(methods: Iterable[str]) -> str:
    """Return the header's value; it adds HEAD to GET because HttpBoundary answers HEAD for each GET route."""
    known = {str(method) for method in methods}
    return ", ".join(sorted(known | {"HEAD"} if "GET" in known else known))


async def answer_options(scope: HTTPScope, send: Send) -> None:
    methods = {
        method
        for route in scope["litestar_app"].routes
        if isinstance(route, HTTPRoute) and route.path_format == scope["path_template"]
        for method in route.methods
    }
    headers = [(b"allow", allow(methods).encode())]
    await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
