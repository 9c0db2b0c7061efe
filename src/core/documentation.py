"""The API's documentation as one plain page: no scripts, nothing fetched from elsewhere."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from litestar import Request
from litestar.openapi.plugins import OpenAPIRenderPlugin

METHODS = ("get", "post", "put", "patch", "delete")

STYLE = """
:root{color-scheme:light dark;--line:#d8dde3;--soft:#f5f7f9;--text:#1c2430;--faint:#5b6675;--accent:#0b6b57}
@media(prefers-color-scheme:dark){:root{--line:#333c47;--soft:#1b2129;--text:#e4e9ef;--faint:#97a3b1;--accent:#5fd0b5}
body{background:#12161b}}
*{box-sizing:border-box}
body{margin:0;font:16px/1.55 system-ui,sans-serif;color:var(--text)}
.page{display:grid;grid-template-columns:17rem minmax(0,1fr);max-width:76rem;margin:0 auto}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:2rem 1rem 2rem 1.5rem;border-right:1px solid var(--line);font-size:.9rem}
nav a{display:block;padding:.15rem 0;color:inherit;text-decoration:none}
nav a:hover{color:var(--accent)}
nav b{display:block;margin:1.1rem 0 .2rem;color:var(--faint);font-size:.8rem}
main{padding:2rem 2rem 5rem}
h1{margin:0;font-size:1.9rem} h2{margin:3rem 0 0;font-size:1.3rem} h3{margin:2.2rem 0 .4rem;font-size:1.05rem}
h4{margin:1rem 0 .3rem;font-size:.85rem;color:var(--faint);font-weight:600}
code,pre{font:.86rem/1.5 ui-monospace,monospace}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.8rem 1rem;overflow:auto;margin:.3rem 0}
.route{font:.95rem ui-monospace,monospace;word-break:break-all}
.method{font-weight:700;color:var(--accent);text-transform:uppercase}
table{border-collapse:collapse;width:100%;font-size:.9rem}
td{padding:.35rem .8rem .35rem 0;border-top:1px solid var(--line);vertical-align:top}
td:first-child{white-space:nowrap} .faint{color:var(--faint)}
@media(max-width:50rem){.page{display:block} nav{position:static;height:auto;border:0} main{padding:1rem 1.5rem}}
"""


class DocumentationPage(OpenAPIRenderPlugin):
    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Called once by Litestar per path; the page is as static as the routes are."""
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


def _operation(
    document: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Iterator[str]:
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
    for status, response in operation.get("responses", {}).items():
        yield from _content(
            document, f"{status} {response.get('description', '')}", response.get("content", {})
        )


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
        for example in media.get("examples", {}).values():
            value = example["value"]
            text = value if isinstance(value, str) else json.dumps(value, indent=2)
            yield f"<pre>{escape(text)}</pre>"


def _row(name: str, note: str, kind: str, text: str) -> str:
    return (
        f"<tr><td><code>{escape(name)}</code> <span class=faint>{escape(note)}</span></td>"
        f"<td><code>{escape(kind)}</code></td><td>{_prose(text)}</td></tr>"
    )


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if not reference:
        return schema
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
    """Paragraphs and `code`, which is all our docstrings use."""
    parts = escape(text.strip(), quote=False).split("`")
    marked = "".join(
        f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts)
    )
    return marked.replace("\n\n", "</p><p>")
