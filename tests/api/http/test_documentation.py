"""Tests of the OpenAPI document and the documentation page."""

import base64
import hashlib
import html
import json
import re
from typing import get_args

import pytest

from features.auth.domain.roles import ALLOWED, ROLES, Scope


@pytest.fixture
async def document(client):
    return (await client.get("/schema/openapi.json")).json()


@pytest.fixture
async def page(client):
    return await client.get("/schema")


@pytest.fixture
def operations(document):
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


async def test_the_document_is_openapi_3_1(client):
    answer = await client.get("/schema/openapi.json")

    assert answer.headers["content-type"] == "application/vnd.oai.openapi+json"
    assert answer.json()["openapi"].startswith("3.1.")
    assert answer.json()["info"]["title"] == "Oslira"


def test_document_describes_the_product_and_not_itself(document):
    assert [path for path in document["paths"] if not path.startswith(("/v1/", "/health"))] == []


def test_every_operation_has_an_id_of_its_own(operations):
    ids = [operation["operationId"] for _, operation in operations]

    assert len(ids) == len(set(ids)) >= 10
    assert all(re.fullmatch("[a-z][a-zA-Z]+", name) for name in ids)


@pytest.mark.parametrize("field", ["summary", "description", "tags"])
def test_every_operation_is_described(operations, field):
    assert [name for name, operation in operations if not operation.get(field)] == []


def names_in(document, part, found=None):
    """Names of all properties in a part of the document and in the schemas it refers to."""
    found = set() if found is None else found
    if isinstance(part, list):
        for item in part:
            names_in(document, item, found)
    elif isinstance(part, dict):
        found |= set(part.get("properties", ()))
        reference = part.get("$ref", "")
        if reference and reference not in found:
            found.add(reference)
            names_in(document, document["components"]["schemas"][reference.rpartition("/")[2]], found)
        names_in(document, list(part.values()), found)
    return found


@pytest.mark.parametrize("is_admin", [True, False])
def test_only_operators_are_shown_what_providers_charge(document, is_admin):
    operations = [
        methods for path, methods in document["paths"].items() if path.startswith("/v1/admin/") == is_admin
    ]
    money = re.compile("cost|usd|dollar|margin")

    shown = [name for name in names_in(document, operations) if money.search(name) and "#" not in name]

    assert bool(shown) == is_admin, shown


def shows_success(operation):
    """True if every success response has an example or no content."""
    successes = {code: answer for code, answer in operation["responses"].items() if code.startswith("2")}
    return bool(successes) and all(
        code == "204" or all(media.get("examples") for media in answer["content"].values())
        for code, answer in successes.items()
    )


def test_every_operation_has_an_example_of_success(operations):
    assert [name for name, operation in operations if not shows_success(operation)] == []


def test_every_body_has_an_example(operations, page):
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for _, operation in operations
        if "requestBody" in operation
    ]

    assert len(bodies) >= 10
    for body in bodies:
        (example,) = body["examples"]
        assert html.escape(json.dumps(example, indent=2)) in page.text


def test_every_body_schema_forbids_unknown_fields(document):
    bodies = {
        name: schema
        for name, schema in document["components"]["schemas"].items()
        if name.endswith(("Request", "Patch"))
    }

    assert len(bodies) >= 14
    assert [name for name, schema in bodies.items() if schema.get("additionalProperties") is not False] == []


def test_a_token_is_asked_for_by_default(document):
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
def test_public_operations_say_that_they_need_no_token(document, path):
    assert document["paths"][path]["get"].get("security") in ([], [{}])


async def test_the_page_is_html_that_names_every_operation(page, operations):
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.text.startswith("<!doctype html>")
    for name, operation in operations:
        assert f">{html.escape(operation['summary'])}</h3>" in page.text, name
        assert f"href='#{operation['operationId']}'" in page.text, name


def test_every_link_of_the_page_leads_somewhere_on_it(page):
    targets = re.findall(r"href='#([^']+)'", page.text)

    assert len(targets) > 10
    assert [target for target in targets if not re.search(rf"id='?{target}['> ]", page.text)] == []


def test_the_page_runs_nothing_and_fetches_nothing(page):
    assert re.findall(r"<(?:script|link|img|iframe|object|embed)\b", page.text) == []
    assert re.findall(r"\bon\w+=|javascript:|@import|url\(", page.text) == []
    without_examples = re.sub(r"<pre>[^<]*</pre>", "", page.text)  # a URL in an example is not fetched
    assert re.findall(r"(?:https?:)?//[\w.-]+", without_examples) == []


def test_content_security_policy_allows_only_the_pages_own_style(page):
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = dict(
        directive.strip().partition(" ")[::2]
        for directive in page.headers["content-security-policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert policy.get("style-src") in (f"'sha256-{digest}'", "'unsafe-inline'")


@pytest.mark.parametrize("permission", ALLOWED)
def test_document_and_page_show_which_role_may_do_what(document, page, permission):
    allowed = ["yes" if role in ALLOWED[permission] else "-" for role in ROLES]
    scope = "by scope" if permission in get_args(Scope) else "-"
    cells = "".join(f"<td>{cell}</td>" for cell in (*allowed, scope))

    assert f"| `{permission}` | {' | '.join((*allowed, scope))} |" in document["info"]["description"]
    assert f"<tr><td><code>{permission}</code></td>{cells}</tr>" in page.text


def test_the_table_has_a_title_for_every_role(page):
    titles = "".join(f"<th>{title}</th>" for title in ("Permission", *ROLES, "API key"))

    assert f"<table><tr>{titles}</tr>" in page.text


def test_document_and_page_show_the_route_policy_of_every_operation(operations, page):
    words = {
        "public": "everybody",
        "signed_in": "API key",
        "users_only": "users",
        "operators_only": "operators",
    }
    sections = dict(re.findall(r"<h3 id='(\w+)'>.*?<p class=access>(.*?)</p>", page.text, re.DOTALL))

    for name, operation in operations:
        access, section = operation["x-access"], sections[operation["operationId"]]
        assert access in words or access in ALLOWED, name
        assert words.get(access, f"Needs <code>{access}</code>.") in section, name


def test_every_operation_documents_the_headers_that_the_middleware_reads(operations):
    for name, operation in operations:
        headers = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "header"}
        is_public = operation.get("security") == [{}]
        assert ("Oslira-Account" in headers) is not is_public, name
        assert ("Idempotency-Key" in headers) is (name.startswith("post") and not is_public), name


def test_every_operation_documents_the_problems_of_the_middleware(operations):
    for name, operation in operations:
        expected = {"400", "429"}
        if operation.get("security") != [{}]:
            expected |= {"401", "403", "404", "422", "503"}
        if not name.startswith("get"):
            expected |= {"408", "413", "415", "503"}
        assert expected <= operation["responses"].keys(), name


def test_no_parameter_may_be_null(operations):
    schemas = [one["schema"] for _, operation in operations for one in operation.get("parameters", ())]

    assert len(schemas) > 50
    assert [schema for schema in schemas if not isinstance(schema.get("type"), str)] == []
