import re
import uuid

import jsonschema_rs
import pytest


@pytest.fixture
async def document(client):
    return (await client.get("/schema/openapi.json")).json()


@pytest.fixture
def operations(document):
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


@pytest.fixture
def is_allowed(document):
    """Returns a function that checks a value against a schema of the document."""

    def validate(schema, value):
        whole = {**schema, "components": document["components"]}
        return jsonschema_rs.validator_for(whole, validate_formats=True).is_valid(value)

    return validate


@pytest.fixture
def assert_refused(is_allowed):
    def check(answer, about):
        assert 400 <= answer.status_code < 500, (about, answer.status_code, answer.text)
        assert answer.headers["content-type"] == "application/problem+json", about
        assert is_allowed({"$ref": "#/components/schemas/Problem"}, answer.json()), about
        assert answer.json()["request_id"] == answer.headers["x-request-id"], about

    return check


@pytest.fixture
def send(client, operator, account_id_of_operator):
    """Returns a function that calls an operation, with well-formed random ids by default."""

    async def call(method, path, *, query="", id_text=None, headers=(), content=None):
        def filled(match):
            own = account_id_of_operator if match[1] == "account_id" else str(uuid.uuid4())
            return own if id_text is None else id_text

        url = re.sub(r"\{(\w+)\}", filled, path) + query
        sent = [*operator.items(), *headers]
        return await client.request(method, url, headers=sent, content=content)

    return call


@pytest.fixture
async def account_id_of_operator(client, operator):
    return (await client.get("/v1/me", headers=operator)).json()["account"]["id"]
