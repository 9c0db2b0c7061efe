"""API documentation as one static page without scripts or external resources."""

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

from litestar import Request
from litestar.openapi.plugins import OpenAPIRenderPlugin

from shared.http.problems import MEDIA_TYPE

METHODS = ("get", "post", "put", "patch", "delete")

STYLE = files("core.api").joinpath("docs_page.css").read_text("utf-8")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; frame-ancestors 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'"
)


class DocumentationPage(OpenAPIRenderPlugin):
    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Litestar calls this once and caches the page, which is as static as the routes."""
        del request
        return "".join(_page(openapi_schema)).encode()


def _page(document: dict[str, Any]) -> Iterator[str]:
    info = document["info"]
    groups = _grouped(document)
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])} API</title>"
    yield "<meta name=viewport content='width=device-width,initial-scale=1'>"
    yield f"<style>{STYLE}</style><div class=page><nav><a href='#top'><strong>"
    yield f"{escape(info['title'])} API</strong></a>"
    for group, operations in groups.items():
        yield f"<b>{escape(group)}</b>"
        for _, _, operation in operations:
            yield f"<a href='#{operation['operationId']}'>{escape(operation['summary'])}</a>"
    yield f"</nav><main id=top><h1>{escape(info['title'])} API</h1>"
    yield f"<p class=faint>Version {escape(info['version'])}. The same as data: "
    yield "<a href='/schema/openapi.json'>openapi.json</a></p>"
    yield f"<p>{_prose(info['description'])}</p>"
    for group, operations in groups.items():
        yield f"<h2>{escape(group)}</h2>"
        for path, method, operation in operations:
            yield from _operation(document, path, method, operation)
    yield "</main></div></html>"


Operation = tuple[str, str, dict[str, Any]]


def _grouped(document: dict[str, Any]) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                group = (item[method].get("tags") or ["Other"])[0]
                groups.setdefault(group, []).append((path, method, item[method]))
    return groups


def _operation(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h3 id='{operation['operationId']}'>{escape(operation['summary'])}</h3>"
    yield f"<div class=route><span class=method>{method}</span> {escape(path)}</div>"
    yield f"<p>{_prose(operation.get('description', ''))}</p>"
    if parameters := operation.get("parameters"):
        yield "<h4>Parameters</h4><table>"
        for parameter in parameters:
            yield _row(
                parameter["name"],
                parameter["in"],
                _type(document, parameter.get("schema", {})),
                parameter.get("description", ""),
            )
        yield "</table>"
    if body := operation.get("requestBody"):
        yield from _content(document, "Body", body["content"])
    refusals: list[str] = []
    for status, response in operation.get("responses", {}).items():
        content, description = response.get("content", {}), response.get("description", "")
        if MEDIA_TYPE in content:
            refusals.append(f"{status} {description}")
        else:
            yield from _content(document, f"{status} {description}", content)
    if refusals:
        yield f"<h4>Refusals <span class=faint>{MEDIA_TYPE}</span></h4>"
        yield f"<p class=faint>{escape(', '.join(refusals))}</p>"


def _content(document: dict[str, Any], title: str, content: dict[str, Any]) -> Iterator[str]:
    for media_type, media in content.items():
        yield f"<h4>{escape(title)} <span class=faint>{escape(media_type)}</span></h4>"
        schema = _resolved(document, media.get("schema", {}))
        if properties := schema.get("properties"):
            required = schema.get("required", [])
            yield "<table>"
            for name, field in properties.items():
                note = "" if name in required else "optional"
                text = _resolved(document, field).get("description", "")
                yield _row(name, note, _type(document, field), text)
            yield "</table>"
        for value in _examples(media):
            text = value if isinstance(value, str) else json.dumps(value, indent=2)
            yield f"<pre>{escape(text)}</pre>"


def _examples(media: dict[str, Any]) -> list[Any]:
    """A response has its examples next to the schema, a request body inside it."""
    named = [example["value"] for example in media.get("examples", {}).values()]
    return named or media.get("schema", {}).get("examples", [])


def _row(name: str, note: str, kind: str, text: str) -> str:
    return (
        f"<tr><td><code>{escape(name)}</code> <span class=faint>{escape(note)}</span></td>"
        f"<td><code>{escape(kind)}</code></td><td>{_prose(text)}</td></tr>"
    )


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    whole = schema["allOf"][0] if "allOf" in schema else schema
    reference = whole.get("$ref")
    if not reference:
        return whole
    return document["components"]["schemas"][reference.rpartition("/")[2]]


def _type(document: dict[str, Any], schema: dict[str, Any]) -> str:
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " | ".join(_type(document, choice) for choice in choices)
    if reference := schema.get("$ref"):
        return str(reference).rpartition("/")[2]
    if options := schema.get("enum"):
        return " | ".join(json.dumps(option) for option in options)
    if schema.get("type") == "array":
        return f"list of {_type(document, schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _prose(text: str) -> str:
    """Supports paragraphs, `code` and tables, the only markup in our texts."""
    parts = escape(text.strip(), quote=False).split("`")
    marked = "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
    return "</p><p>".join(
        _table(paragraph) if paragraph.startswith("|") else paragraph for paragraph in marked.split("\n\n")
    )


def _table(lines: str) -> str:
    head, _, *rows = [line.strip("| ").split(" | ") for line in lines.splitlines()]
    titles = "".join(f"<th>{title}</th>" for title in head)
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"</p><table><tr>{titles}</tr>{cells}</table><p>"
