import uuid

import jsonschema_rs
import pytest

from features.analysis.domain.analysis import LeadKey
from infrastructure.database.leads.leads import PostgresAnalysisResults
from tests.api.business.urls import PROFILES
from tests.unit.features.analysis.examples import analysis, profile


@pytest.fixture
async def headers(bearer):
    return bearer()


@pytest.fixture
async def key(client, headers):
    """Key of a lead for the only business of a new user."""
    answer = await client.post(PROFILES, headers=headers, json={"name": "Alpine Coffee"})
    business = answer.json()
    return LeadKey(
        account_id=uuid.UUID(business["account_id"]),
        business_profile_id=uuid.UUID(business["id"]),
        username="ana.bakes",
    )


@pytest.fixture
def save(owner, key):
    """A function that saves an analysis as the system does; returns the analysis and the lead's id."""

    async def save(username="ana.bakes", analysis_type="light", *, of=None, **fields):
        of = of or profile(username=username)
        named = LeadKey(
            account_id=key.account_id, business_profile_id=key.business_profile_id, username=username
        )
        made = analysis(named, analysis_type, of=of, **fields)
        return made, (await PostgresAnalysisResults(owner).save(made)).lead_id

    return save


@pytest.fixture
def listed(client, headers):
    """A function that returns the usernames of a page of leads."""

    async def listed(**query):
        answer = await client.get("/v1/leads", headers=headers, params=query)
        assert answer.status_code == 200, answer.text
        return [lead["username"] for lead in answer.json()["items"]]

    return listed


@pytest.fixture
async def is_documented(client):
    """A function that validates a response against a schema of the OpenAPI document."""
    document = (await client.get("/schema/openapi.json")).json()

    def validate(name, answer):
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(answer.json())

    return validate
