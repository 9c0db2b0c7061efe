"""Interactive API documentation: Swagger UI, with all files served by this process."""

from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, cast

from litestar import MediaType, Request, get
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.response import Redirect

from shared.http.route_policy import PUBLIC

PATH = "/schema"
# Swagger UI sets styles from scripts, so inline styles and scripts stay forbidden; its icons are data URLs.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Oslira API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{PATH}/swagger-ui.css">
<script src="{PATH}/swagger-ui.js" defer></script>
<script src="{PATH}/start.js" defer></script>
</head>
<body><div id="swagger-ui"></div></body>
</html>
"""
START_SCRIPT = f"""\
SwaggerUIBundle({{
  url: "{PATH}/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  filter: true,
  validatorUrl: null,
}});
"""


class StaticFile(OpenAPIRenderPlugin):
    """A file below /schema; Litestar calls ``render`` once and caches the bytes."""

    def __init__(self, path: str, media_type: str, content: str = "", *, package_file: str = "") -> None:
        # Litestar sends any media type, but its enumeration does not contain JavaScript.
        super().__init__(path=path, media_type=cast("MediaType", media_type))
        self._content = content
        self._package_file = package_file

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        del request, openapi_schema
        return _package_file(self._package_file) if self._package_file else self._content.encode()


@cache
def _package_file(path: str) -> bytes:
    """Read a file of the package offapi without importing the package, which would read all its files."""
    return Path(str(distribution("offapi").locate_file(path))).read_bytes()


FILES = (
    StaticFile("/", "text/html", PAGE),
    StaticFile("/start.js", "text/javascript", START_SCRIPT),
    StaticFile("/swagger-ui.js", "text/javascript", package_file="offapi/swagger_bundle.js"),
    StaticFile("/swagger-ui.css", "text/css", package_file="offapi/swagger_style.css"),
)


@get("/", opt=PUBLIC, include_in_schema=False, sync_to_thread=False)
def redirect_to_documentation() -> Redirect:
    return Redirect(PATH, status_code=302)
