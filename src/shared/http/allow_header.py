"""What may be done with an address: the Allow header, and the answer to OPTIONS.

Litestar's own answer to OPTIONS names the methods of a controller's first handler alone.
"""

from collections.abc import Iterable
from http import HTTPStatus

from litestar.routes import HTTPRoute
from litestar.types import HTTPScope, Send


def allow(methods: Iterable[str]) -> str:
    """The edge answers HEAD wherever there is a GET."""
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
