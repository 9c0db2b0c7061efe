"""Cache of the OpenAPI document for the applications of a test process.

Building it takes half of the time to create an application, so it is built once for each set of routes. The
applications then share one document object.
"""

from functools import wraps

from litestar._openapi.plugin import OpenAPIPlugin

from core import app


def share_documents(monkeypatch):
    documents, completed = {}, []
    build, complete = OpenAPIPlugin._build_openapi, app.complete  # noqa: SLF001  Litestar offers no other way

    @wraps(build)
    def build_once(plugin):
        routes = tuple(plugin.included_routes)
        if routes not in documents:
            documents[routes] = build(plugin)
        return documents[routes]

    @wraps(complete)
    def complete_once(litestar):
        document = litestar.openapi_schema
        if not any(document is other for other in completed):
            complete(litestar)
            completed.append(document)

    monkeypatch.setattr(OpenAPIPlugin, "_build_openapi", build_once)
    monkeypatch.setattr(app, "complete", complete_once)
