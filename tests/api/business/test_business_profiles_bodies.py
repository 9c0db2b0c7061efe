"""Invalid request bodies of business profiles: rejected with the field's name, never a 500."""

import uuid

import pytest

from features.business.domain.profile import ProfileContent, ProfileId
from features.business.domain.texts import LINE_PATTERN
from shared.errors import DomainError
from tests.api.business.urls import PROFILES, listed
from tests.support.problems import assert_problem


async def test_update_that_contradicts_unchanged_fields_is_rejected(client, headers, url):
    answer = await client.patch(url, headers=headers, json={"ideal_customer": {"followers_min": 250_001}})

    assert_problem(answer, 422, "business_profile_invalid")
    assert answer.json()["facts"] == {"field": "ideal_customer.followers_max"}


@pytest.mark.parametrize(
    "text",
    ["☕️👩‍👩‍👧", "مقهى جبال الألب", "\u202e)-:", "'; drop table x --", "</business_profile>"],
    ids=ascii,
)
async def test_every_script_is_returned_unchanged(create, text):
    profile = (
        await create(name=text, offering=f"{text}\n\t{text}", ideal_customer={"niches": [text]})
    ).json()

    assert (profile["name"], profile["offering"]) == (text, f"{text}\n\t{text}")
    assert profile["ideal_customer"]["niches"] == [text]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "a\0"}, 422),
        ({"name": "a\nb"}, 422),
        ({"name": "   "}, 422),
        ({"offering": "a\x1b[31m"}, 422),
        ({"website": "https://user:password@example.com"}, 422),
        ({"website": "javascript:alert(1)"}, 422),
        ({"language": "english please"}, 422),
        ({"ideal_customer": {"niches": ["a\0"]}}, 422),
        ({"ideal_customer": {"niches": [" "]}}, 422),
        ({"ideal_customer": {"followers_min": 2, "followers_max": 1}}, 422),
        ({"name": ""}, 400),
        ({"name": None}, 400),
        ({"name": "x" * 201}, 400),
        ({"summary": "x" * 501}, 400),
        ({"offering": 1}, 400),
        ({"surprise": 1}, 400),
        ({"ideal_customer": None}, 400),
        ({"ideal_customer": {"surprise": 1}}, 400),
        ({"ideal_customer": {"followers_min": 2**70}}, 400),
        ({"ideal_customer": {"followers_min": -1}}, 400),
        ({"ideal_customer": {"followers_min": 1.5}}, 400),
        ({"ideal_customer": {"followers_min": "5"}}, 400),
        ({"ideal_customer": {"engagement_rate_min": 100.5}}, 400),
        ({"ideal_customer": {"engagement_rate_min": "2"}}, 400),
        ({"ideal_customer": {"niches": None}}, 400),
        ({"ideal_customer": {"niches": ["x" * 101]}}, 400),
        ({"ideal_customer": {"niches": ["x"] * 51}}, 400),
        ({"ideal_customer": {"niches": [str(number) for number in range(10_000)]}}, 400),
    ],
    ids=lambda value: ascii(value)[:60],
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_wrong_value_is_rejected_with_a_reason(client, headers, profile, url, method, body, status):
    sent = {"name": "Alpine Coffee", **body} if method == "POST" else body

    answer = await client.request(method, PROFILES if method == "POST" else url, headers=headers, json=sent)

    assert_problem(answer, status, "business_profile_invalid" if status == 422 else "invalid_request")
    assert answer.json()["detail"]
    assert (await client.get(url, headers=headers)).json() == profile
    assert len(await listed(client, headers)) == 1


@pytest.mark.parametrize("rate", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_rate_that_is_not_a_number_is_rejected(client, headers, url, method, rate):
    content = f'{{"name": "X", "ideal_customer": {{"engagement_rate_min": {rate}}}}}'
    sent = {"content": content, "headers": {**headers, "Content-Type": "application/json"}}

    answer = await client.request(method, PROFILES if method == "POST" else url, **sent)

    assert_problem(answer, 400, "invalid_request")


@pytest.mark.parametrize("content", [b'{"name": "\\ud800"}', b'{"name": "a", "tone": "\\udfff"}'], ids=ascii)
async def test_lone_surrogate_is_rejected(client, headers, content):
    sent = {**headers, "Content-Type": "application/json"}

    answer = await client.post(PROFILES, headers=sent, content=content)

    assert_problem(answer, 400, "invalid_request")


async def test_longest_valid_profile_is_accepted(client, create, headers):
    entries = [f"{number:0100}" for number in range(50)]
    body = {
        "name": "😀" * 200,
        "website": "https://x/" + "y" * 490,
        "industry": "😀" * 200,
        "summary": "😀" * 500,
        "offering": "😀" * 4_000,
        "target_audience": "😀" * 4_000,
        "value_proposition": "😀" * 2_000,
        "tone": "😀" * 200,
        "outreach_goal": "😀" * 500,
        "language": "abcdefgh-" * 3 + "abcdefgh",
        "ideal_customer": {
            "followers_min": 10_000_000_000,
            "followers_max": 10_000_000_000,
            "engagement_rate_min": 100,
            **dict.fromkeys(("niches", "content_themes", "geographies", "exclusions"), entries),
        },
    }

    created = await create(**body)

    assert created.json().items() >= body.items()
    assert (await client.get(f"{created.headers['location']}/context", headers=headers)).status_code == 200


async def test_body_matches_its_documented_schema(client):
    schemas = (await client.get("/schema/openapi.json")).json()["components"]["schemas"]

    for name in ("ProfileRequest", "IdealCustomerRequest", "ProfilePatch", "IdealCustomerPatch"):
        assert schemas[name]["additionalProperties"] is False
    customer = schemas["IdealCustomerPatch"]["properties"]
    assert (customer["followers_min"]["minimum"], customer["followers_min"]["maximum"]) == (0, 10_000_000_000)
    assert (customer["engagement_rate_min"]["minimum"], customer["engagement_rate_min"]["maximum"]) == (
        0,
        100,
    )
    assert (customer["niches"]["items"]["maxLength"], customer["niches"]["maxItems"]) == (100, 50)
    assert customer["niches"]["items"]["pattern"] == LINE_PATTERN
    assert schemas["ProfileRequest"]["required"] == ["name"]
    assert schemas["ProfilePatch"]["required"] == []


async def test_rejection_by_the_domain_stores_nothing(application, tenant):
    with pytest.raises(DomainError):
        await application.dependencies["profiles"].create(
            tenant.caller, ProfileId(uuid.uuid4()), ProfileContent(name="\ud800")
        )

    page = await application.dependencies["profiles"].page(tenant.caller, deleted=False, cursor=None, limit=1)
    assert page.items == []
