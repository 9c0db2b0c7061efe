"""API of stored analyses."""

import uuid

import msgspec
import pytest

from features.analysis.controllers.analysis_schemas import AnalysisResponse
from features.analysis.controllers.examples import ANALYSIS_EXAMPLE
from tests.support.problems import assert_problem
from tests.unit.features.analysis.examples import days_before

ANALYSES = "/v1/analyses"
NAMES = {
    "light": {"light"},
    "deep": {"core", "outreach", "personality"},
    "xray": {"psychographic", "commercial", "outreach", "personality"},
}


@pytest.mark.parametrize("analysis_type", NAMES)
async def test_analysis_is_returned_completely(client, headers, save, analysis_type):
    made, lead_id = await save("ana.bakes", analysis_type, user_id=uuid.UUID(int=9))

    answer = await client.get(f"{ANALYSES}/{made.id}", headers=headers)

    read = answer.json()
    assert (answer.status_code, read["id"], read["lead_id"]) == (200, str(made.id), str(lead_id))
    assert (read["type"], read["status"], read["user_id"]) == (
        analysis_type,
        "completed",
        str(uuid.UUID(int=9)),
    )
    assert (read["score"], read["tier"]) == (made.score.total, made.score.tier)
    assert sum(one["points"] for one in read["components"]) == read["score"]
    assert read["facts"] == msgspec.json.decode(msgspec.json.encode(made.facts))
    assert (read["profile"]["followers_count"], read["profile"]["external_urls"]) == (12_000, [])
    assert "posts" not in read["profile"]
    assert {name for name, answer in read["answers"].items() if answer is not None} == NAMES[analysis_type]
    assert [reason["evidence"] for reason in read["reasons"]] == [["p1", "p2"]]
    assert [post["label"] for post in read["evidence"]] == ["p1"]
    assert (read["models"], read["is_simulated"], read["is_cached"]) == (["openai/gpt-5-mini"], True, False)
    assert read["removals"] == [{"field": "summary", "kind": "link", "text": "bit.example/x"}]


async def test_response_matches_its_documented_schema(client, headers, save, is_documented):
    for analysis_type in NAMES:
        made, lead_id = await save("ana.bakes", analysis_type)
        for path, name in (
            (f"{ANALYSES}/{made.id}", "AnalysisResponse"),
            (f"/v1/leads/{lead_id}", "LeadDetails"),
            (f"/v1/leads/{lead_id}/analyses", "LeadAnalysisPage"),
            ("/v1/leads", "LeadPage"),
        ):
            assert is_documented(name, await client.get(path, headers=headers)), name


async def test_analyses_are_paged_newest_first_and_filtered(client, headers, key, save):
    saved = [await save("ana"), await save("ben", "deep"), await save("ana", at=days_before(1))]
    ids = [str(made.id) for made, _ in saved]

    async def listed(**query):
        answer = await client.get(ANALYSES, headers=headers, params=query)
        return [entry["id"] for entry in answer.json()["items"]], answer.json()["next_cursor"]

    first, cursor = await listed(limit=2)
    assert first + (await listed(limit=2, cursor=cursor))[0] == ids[::-1]
    assert (await listed(type="deep"))[0] == [ids[1]]
    assert (await listed(lead_id=saved[0][1]))[0] == [ids[2], ids[0]]
    assert (await listed(business_profile_id=key.business_profile_id))[0] == ids[::-1]
    assert (
        (await listed(lead_id=uuid.uuid4()))[0] == (await listed(business_profile_id=uuid.uuid4()))[0] == []
    )


async def test_list_has_the_plans_age_limit_and_reading_by_id_has_none(client, headers, owner, save):
    made, lead_id = await save()
    await owner.execute("update analyses set created_at = now() - interval '31 days' where id = $1", made.id)

    for path in (ANALYSES, f"/v1/leads/{lead_id}/analyses"):
        assert (await client.get(path, headers=headers)).json()["items"] == []
    assert (await client.get(f"{ANALYSES}/{made.id}", headers=headers)).status_code == 200


async def test_unfinished_and_foreign_ids_give_the_same_response(client, bearer, headers, owner, save, key):
    run_id = uuid.uuid4()
    await owner.execute("select ledger.grant_credits($1, 10, 'g', 'admin_grant')", key.account_id)
    await owner.execute(
        "select runs.start($1, $2, 'light_analysis', '{}', 1, 'analysis', 'no_worker')",
        *(key.account_id, run_id),
    )
    made, _ = await save()

    async def ask(one, who):
        answer = await client.get(f"{ANALYSES}/{one}", headers=who)
        assert_problem(answer, 404, "analysis_not_found")
        assert "/v1/runs/" in answer.json()["detail"]
        return answer.text.replace(answer.headers["x-request-id"], "")

    assert await ask(run_id, headers) == await ask(uuid.uuid4(), headers) == await ask(made.id, bearer())


def test_documented_example_is_a_valid_response():
    read = msgspec.convert(ANALYSIS_EXAMPLE, AnalysisResponse)

    assert msgspec.json.decode(msgspec.json.encode(read)) == ANALYSIS_EXAMPLE
