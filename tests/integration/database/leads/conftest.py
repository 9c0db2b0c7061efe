import pytest

from infrastructure.database.analysis.analyses import PostgresAnalyses
from infrastructure.database.leads.leads import PostgresAnalysisResults, PostgresLeads
from tests.integration.database.leads.reads import new_key
from tests.unit.features.analysis.examples import analysis, changed, profile


@pytest.fixture
def results(database):
    return PostgresAnalysisResults(database.admin("tests"))


@pytest.fixture
def leads(database):
    return PostgresLeads(database)


@pytest.fixture
def analyses(database):
    return PostgresAnalyses(database)


@pytest.fixture
async def key(owner, tenant):
    """Of a lead of a business of the tenant's."""
    return await new_key(owner, tenant)


@pytest.fixture
async def four(results, owner, tenant, key):
    """Leads that differ in everything; two of them have the same score and number of followers."""
    other = await new_key(owner, tenant)
    people = {
        "dora": (key, "light", 100, "Sourdough Bread", {"full_name": "Dora 100%", "followers_count": 5}),
        "ben": (key, "deep", 0, "coffee", {"full_name": "Ben", "biography": "Ana's friend ÄÖ"}),
        "ana.bakes": (key, "light", 80, "Coffee", {"full_name": "=Ana"}),
        "cleo_": (other, "light", 80, "BREAD", {"full_name": "Cleo"}),
    }
    for username, (of, analysis_type, overall, niche, fields) in people.items():
        made = analysis(
            changed(of, username=username),
            analysis_type,
            of=profile(username=username, **fields),
            overall=overall,
            niche=niche,
        )
        await results.save(made)
    return list(people)
