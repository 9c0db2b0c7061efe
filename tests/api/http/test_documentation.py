"""Tests of the OpenAPI document and the documentation page."""

import re
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from core.api.route_policy import TEXTS, route_policy_text
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


def media_types(operation):
    """Content of the request body and of the success responses."""
    bodies = [operation.get("requestBody", {}).get("content", {})]
    answers = [answer.get("content", {}) for code, answer in operation["responses"].items() if code < "4"]
    return [media for content in bodies + answers for media in content.values()]


def without_unicode_classes(part):
    """Python's regular expressions do not know patterns such as ``\\p{L}``."""
    if isinstance(part, dict):
        return {
            name: without_unicode_classes(value)
            for name, value in part.items()
            if name != "pattern" or "\\p" not in str(value)
        }
    return [without_unicode_classes(item) for item in part] if isinstance(part, list) else part


def test_every_example_is_valid_against_its_schema(document, operations):
    components = without_unicode_classes(document["components"])
    examples = [
        (name, media["schema"], example["value"])
        for name, operation in operations
        for media in media_types(operation)
        for example in media["examples"].values()
    ]

    assert len(examples) > len(operations)
    for name, schema, value in examples:
        checker = Draft202012Validator.FORMAT_CHECKER
        validator = Draft202012Validator({**schema, "components": components}, format_checker=checker)
        assert [error.message for error in validator.iter_errors(value)] == [], name


@pytest.mark.parametrize("permission", ALLOWED)
def test_document_lists_the_permissions_of_each_role(document, permission):
    allowed = ["yes" if role in ALLOWED[permission] else "-" for role in ROLES]
    scope = "by scope" if permission in get_args(Scope) else "-"

    assert f"| `{permission}` | {' | '.join((*allowed, scope))} |" in document["info"]["description"]


def test_every_operation_describes_its_route_policy(operations):
    for name, operation in operations:
        access = operation["x-access"]
        assert access in TEXTS or access in ALLOWED, name
        assert operation["description"].endswith(route_policy_text(access)), name


async def test_page_loads_its_files_from_this_server_only(client, page):
    files = re.findall(r'(?:src|href)="([^"]+)"', page.text)

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert [file for file in files if not file.startswith(("/schema/", "data:"))] == []
    for file in files:
        if file.startswith("/"):
            answer = await client.get(file)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(("text/css", "text/javascript"))


def test_content_security_policy_allows_no_inline_script_and_no_other_host(page):
    policy = page.headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert re.findall(r"<script(?! src)|<style|\bon\w+=|style=", page.text) == []


async def test_root_redirects_to_the_documentation(client):
    answer = await client.get("/")

    assert (answer.status_code, answer.headers["location"]) == (302, "/schema")
