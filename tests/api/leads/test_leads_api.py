"""Leads end to end: the real app on the real database, over HTTP."""

import csv
import io
import uuid

import pytest

from features.analysis.domain.scoring.scoring import tier_of
from features.leads.application import leads as use_case
from features.leads.domain.leads import CSV_COLUMNS, SORTS
from tests.support.problems import assert_problem
from tests.unit.features.analysis.examples import analysis, changed, days_before, profile

LEADS = "/v1/leads"


async def test_a_lead_is_listed_and_read(client, headers, key, save):
    made, lead_id = await save("ana.bakes", "deep", of=profile(external_urls=("https://a.example",)))

    listed = (await client.get(LEADS, headers=headers)).json()
    read = await client.get(f"{LEADS}/{lead_id}", headers=headers)

    (item,) = listed["items"]
    assert listed["next_cursor"] is None
    assert (
        item.items()
        >= {
            "id": str(lead_id),
            "business_profile_id": str(key.business_profile_id),
            "username": "ana.bakes",
            "external_urls": ["https://a.example"],
            "score": made.score.total,
            "last_analysis_id": str(made.id),
            "last_analysis_type": "deep",
            "deleted_at": None,
        }.items()
    )
    assert read.json().items() > item.items()
    assert read.json()["latest_analysis"]["id"] == str(made.id)
    assert read.json()["comparison"] is None


async def test_an_account_without_leads_has_an_empty_list(client, headers):
    answer = await client.get(LEADS, headers=headers)

    assert answer.json() == {"items": [], "next_cursor": None}


async def test_a_second_analysis_is_compared_to_the_first(client, headers, save):
    await save(of=profile(followers_count=10_000), at=days_before(30))
    _, lead_id = await save(of=profile(followers_count=12_000))

    comparison = (await client.get(f"{LEADS}/{lead_id}", headers=headers)).json()["comparison"]

    assert (comparison["days_between"], comparison["is_same_type"]) == (30, True)
    assert (comparison["followers_delta"], comparison["followers_delta_percent"]) == (2_000, 20.0)
    assert {"name", "before", "after", "delta"} == comparison["components"][0].keys()


async def test_current_etag_gets_304_until_the_next_analysis(client, headers, save):
    _, lead_id = await save()
    url = f"{LEADS}/{lead_id}"
    tag = (await client.get(url, headers=headers)).headers["etag"]

    known = await client.get(url, headers={**headers, "If-None-Match": tag})
    await save(at=days_before(3))
    changed = await client.get(url, headers={**headers, "If-None-Match": tag})

    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert changed.json()["comparison"]["days_between"] == 3


@pytest.mark.parametrize("sort", SORTS)
async def test_pages_are_stable_while_leads_are_added_and_deleted(client, headers, save, sort):
    names = [f"n{number}" for number in range(6)]
    ids = {}
    for number, name in enumerate(names):
        _, ids[name] = await save(name, of=profile(username=name, followers_count=number // 2))
    whole = (await client.get(LEADS, headers=headers, params={"sort": sort})).json()["items"]
    expected = [lead["username"] for lead in whole]

    seen, query = [], {"sort": sort, "limit": 2}
    while True:
        page = (await client.get(LEADS, headers=headers, params=query)).json()
        seen += [lead["username"] for lead in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
        # Deletes the lead that the cursor points to, and adds one that sorts before this page.
        await client.delete(f"{LEADS}/{ids[seen[-1]]}", headers=headers)
        if sort == "-last_analysed_at":
            await save(f"x{len(seen)}")

    assert len(expected) == 6
    assert seen == expected


async def test_a_cursor_belongs_to_its_sort(client, headers, save):
    for name in ("a", "b", "c"):
        await save(name)
    first = await client.get(LEADS, headers=headers, params={"limit": 1, "sort": "score"})
    cursor = first.json()["next_cursor"]

    for sort in set(SORTS) - {"score"}:
        answer = await client.get(LEADS, headers=headers, params={"sort": sort, "cursor": cursor})
        assert_problem(answer, 422, "cursor_invalid")


async def test_filters_are_combined(key, save, listed):
    await save("ana", overall=100, niche="Coffee")
    await save("ben", "deep", overall=0, niche="coffee", of=profile(username="ben", full_name="Ben"))

    assert await listed(niche="COFFEE", sort="username") == ["ana", "ben"]
    assert await listed(niche="coffee", analysis_type="deep") == ["ben"]
    assert await listed(q="nOVAk") == ["ana"]
    assert await listed(tier="hot,warm,cool,cold", score_min=0, score_max=100, sort="-score") == [
        "ana",
        "ben",
    ]
    assert await listed(business_profile_id=str(key.business_profile_id), q="ben") == ["ben"]
    assert await listed(business_profile_id=str(uuid.uuid4())) == []


async def test_one_or_several_tiers_can_be_requested(save, listed):
    for name, total in (("ana", 80), ("ben", 79), ("cleo", 40), ("dora", 39)):
        await save(name, score=changed(analysis().score, total=total, tier=tier_of(total)))

    assert await listed(tier="hot") == ["ana"]
    assert await listed(tier="cold,warm", sort="username") == ["ben", "dora"]
    assert await listed(tier="cool", score_max=39) == []
    assert await listed(score_min=40, score_max=79, sort="-score") == ["ben", "cleo"]


@pytest.mark.parametrize(
    "query",
    [
        *("tier=tepid", "tier=hot,", "tier=hot%20", "tier=hot&tier=warm", "score_min=-1", "score_max=101"),
        *("q=", "q=%00", "niche=a%00", f"q={'x' * 101}", "sort=niche", "sort=-username", "limit=201"),
        *("business_profile_id=1", "analysis_type=deeper", "cursor=7331", "deleted=1"),
    ],
)
async def test_invalid_query_is_rejected_with_a_reason(client, headers, query):
    for path in (LEADS, f"{LEADS}/export"):
        answer = await client.get(f"{path}?{query}", headers=headers)

        assert answer.status_code in (400, 422)
        assert answer.json()["code"] in ("invalid_request", "cursor_invalid")


async def test_the_history_is_paged_newest_first(client, headers, save):
    made = [await save(at=days_before(days)) for days in (5, 3, 0)]
    ids, url = [str(one.id) for one, _ in made], f"{LEADS}/{made[0][1]}/analyses"

    first = (await client.get(url, headers=headers, params={"limit": 2})).json()
    rest = (await client.get(url, headers=headers, params={"cursor": first["next_cursor"]})).json()

    assert [entry["id"] for entry in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None


async def test_a_deleted_lead_is_hidden_and_can_be_restored(client, headers, save, listed):
    made, lead_id = await save()
    url = f"{LEADS}/{lead_id}"

    deleted = await client.delete(url, headers=headers)

    assert (deleted.status_code, deleted.content) == (204, b"")
    assert (await listed(), await listed(deleted="true")) == ([], ["ana.bakes"])
    for path, code in (
        (url, "lead_not_found"),
        (f"{url}/analyses", "lead_not_found"),
        (f"/v1/analyses/{made.id}", "analysis_not_found"),
    ):
        assert_problem(await client.get(path, headers=headers), 404, code)
    assert_problem(await client.delete(url, headers=headers), 404, "lead_not_found")

    restored = await client.post(f"{url}/restore", headers=headers)

    assert (restored.status_code, restored.headers["etag"]) == (200, '"3"')
    assert (await listed(), await listed(deleted="true")) == (["ana.bakes"], [])
    assert (await client.post(f"{url}/restore", headers=headers)).json() == restored.json()
    assert (await client.get(f"/v1/analyses/{made.id}", headers=headers)).status_code == 200


@pytest.mark.parametrize(("age", "status"), [("29 days 23 hours", 200), ("30 days 1 second", 404)])
async def test_a_lead_can_be_restored_for_30_days(client, headers, owner, save, listed, age, status):
    _, lead_id = await save()
    await client.delete(f"{LEADS}/{lead_id}", headers=headers)
    await owner.execute(
        "update leads set deleted_at = now() - $2::text::interval where id = $1", lead_id, age
    )

    in_list = await listed(deleted="true")
    answer = await client.post(f"{LEADS}/{lead_id}/restore", headers=headers)

    assert (answer.status_code, len(in_list)) == (status, 1 if status == 200 else 0)


async def test_lead_that_was_analysed_again_cannot_be_restored(client, headers, save, listed):
    _, lead_id = await save()
    await client.delete(f"{LEADS}/{lead_id}", headers=headers)
    await save()

    answer = await client.post(f"{LEADS}/{lead_id}/restore", headers=headers)

    assert_problem(answer, 409, "lead_already_exists")
    assert (len(await listed()), len(await listed(deleted="true"))) == (1, 1)


def rows_of(answer):
    return list(csv.reader(io.StringIO(answer.text)))


async def test_export_has_a_row_for_each_lead_and_no_formula(client, headers, save):
    await save("ana", of=profile(username="ana", full_name='=HYPERLINK("https://evil.example")'))
    await save("ben", of=profile(username="ben", full_name='A "B", C\nD'), niche="@sum(1)")

    answer = await client.get(f"{LEADS}/export", headers=headers)

    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="leads.csv"'
    heading, ana, ben = rows_of(answer)
    assert tuple(heading) == CSV_COLUMNS
    assert ana[:2] == ["ana", '\'=HYPERLINK("https://evil.example")']
    assert (ben[1], ben[5]) == ('A "B", C\nD', "'@sum(1)")


async def test_export_has_the_same_filters(client, headers, save):
    _, lead_id = await save("ana")
    await save("ben")
    await client.delete(f"{LEADS}/{lead_id}", headers=headers)

    for query, names in (({}, ["ben"]), ({"deleted": "true"}, ["ana"]), ({"q": "unknown"}, [])):
        answer = await client.get(f"{LEADS}/export", headers=headers, params=query)
        assert [row[0] for row in rows_of(answer)[1:]] == names


async def test_export_in_chunks_misses_no_lead(client, headers, save, monkeypatch):
    monkeypatch.setattr(use_case, "EXPORT_CHUNK", 2)
    for name in ("e", "d", "c", "b", "a"):
        await save(name)

    answer = await client.get(f"{LEADS}/export", headers=headers)

    assert [row[0] for row in rows_of(answer)[1:]] == ["a", "b", "c", "d", "e"]


async def test_export_of_a_foreign_account_is_a_problem(client, headers, tenant):
    answer = await client.get(
        f"{LEADS}/export", headers={**headers, "Oslira-Account": str(tenant.account_id)}
    )

    assert_problem(answer, 404, "account_not_found")


@pytest.mark.parametrize(
    ("method", "suffix"), [("GET", ""), ("GET", "/analyses"), ("DELETE", ""), ("POST", "/restore")]
)
async def test_foreign_and_unknown_leads_give_the_same_response(client, bearer, save, method, suffix):
    _, lead_id = await save()
    stranger = bearer()

    async def ask(one):
        answer = await client.request(method, f"{LEADS}/{one}{suffix}", headers=stranger)
        assert_problem(answer, 404, "lead_not_found")
        return answer.text.replace(answer.headers["x-request-id"], "")

    assert await ask(lead_id) == await ask(uuid.uuid4())
