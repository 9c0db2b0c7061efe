"""Tenant isolation: for every actor, every route treats ids of other tenants as unknown (T24)."""

import re
import uuid

import pytest

from tests.api.tenancy.rules import (
    FIELDS_TRIED,
    FIELDS_WITHOUT_MEANING,
    HARMLESS_HEADERS,
    HARMLESS_QUERIES,
    OPAQUE_QUERIES,
    RULES,
    TRIED_ELSEWHERE,
    TRIED_HEADERS,
    TRIED_QUERIES,
)

VOLATILE = {"x-request-id", "ratelimit", "date"}
KEYS = ("key", "narrow key")


def test_every_route_has_a_rule_and_every_rule_a_route(world):
    assert set(RULES) == set(world.operations)


@pytest.mark.parametrize("operation", RULES)
def test_rule_covers_every_parameter_that_could_contain_an_id(world, operation):
    _, path, documented = world.operations[operation]
    rule = RULES[operation]
    known = {
        "path": set(rule.ids),
        "query": HARMLESS_QUERIES | OPAQUE_QUERIES | TRIED_QUERIES.keys() | TRIED_ELSEWHERE,
        "header": HARMLESS_HEADERS | TRIED_HEADERS,
    }

    assert set(re.findall(r"\{(\w+)\}", path)) == set(rule.ids)
    assert [
        one["name"] for one in documented.get("parameters", []) if one["name"] not in known[one["in"]]
    ] == []
    assert documented["x-access"] == (rule.mark or rule.needs)


def test_every_id_field_of_a_body_is_covered(world):
    fields = {
        name: field
        for body, schema in world.schemas.items()
        if body.endswith(("Request", "Patch"))
        for name, field in schema["properties"].items()
    }
    named = {name for name in fields if re.search(r"^id$|_ids?$|account|token|reference|project", name)}

    assert named == FIELDS_TRIED | FIELDS_WITHOUT_MEANING
    assert {name for name, field in fields.items() if "uuid" in str(field)} <= FIELDS_TRIED


def attacks(rule, actor, victim):
    """Yields (where, account, ids): each of the victim's ids among the attacker's own, and all together."""
    if rule.needs == "public":
        return  # the token itself grants access
    nested = {name: kind for name, kind in rule.things.items() if name != "account_id"}
    own = {name: actor.ids[kind] for name, kind in nested.items()}
    if rule.account != "none":
        for account in {victim.ids["account"], victim.ids[rule.kind_of_account]}:
            yield "account", account, own
            yield "account", account, {name: victim.ids[kind] for name, kind in nested.items()}
    for name, kind in nested.items():
        for other in {kind, kind.removeprefix("deleted_"), f"deleted_{kind}"} & set(victim.ids):
            yield "nested", actor.ids["account"], {**own, name: victim.ids[other]}


def expected(rule, actor, where):
    """403 if role or scope forbid the operation for any id, otherwise 404."""
    if rule.needs == "operators_only" or (rule.needs == "users_only" and actor.name in KEYS):
        return 403
    if where == "account" or actor.name == "outsider":
        return 404
    if actor.name == "outsider who chooses":
        return 404 if rule.account == "path" else 422
    return 404 if rule.allows(actor.name) else 403


def seen(answer):
    headers = {name: value for name, value in answer.headers.items() if name not in VOLATILE}
    body = {name: value for name, value in answer.json().items() if name != "request_id"}
    return answer.status_code, headers, body


async def ask(world, operation, actor, account, ids):
    """Sends the account where the operation expects it: in the path or in the header."""
    rule = RULES[operation]
    headers = actor.headers
    if rule.account == "header" and account != actor.ids["account"]:
        headers = {**headers, "Oslira-Account": account}
    return await world.send(operation, headers, {"account_id": account, **ids})


@pytest.mark.parametrize("operation", RULES)
async def test_objects_of_another_tenant_are_indistinguishable_from_unknown_ones(
    world, victim, attackers, narrow_keys, operation
):
    rule = RULES[operation]
    untouched = await world.rows_of(victim.ids["account"], victim.ids["deleted_account"])
    narrow_key = narrow_keys.get(rule.needs, narrow_keys["credits:read"])
    tried = 0
    for actor in (*attackers, narrow_key):
        if rule.allows(actor.name) and rule.needs == "operators_only":
            continue  # operators may access all accounts
        for where, account, ids in attacks(rule, actor, victim):
            answer = await ask(world, operation, actor, account, ids)
            unknown = unknown_instead_of(victim, account, ids)
            twin = await ask(world, operation, actor, *unknown)

            assert answer.status_code == expected(rule, actor, where), (actor.name, where, answer.text)
            assert seen(answer) == seen(twin), (actor.name, where)
            tried += 1

    assert tried >= 7 or rule.account == "none"
    assert await world.rows_of(victim.ids["account"], victim.ids["deleted_account"]) == untouched


def unknown_instead_of(victim, account, ids):
    theirs = set(victim.ids.values())
    return (
        str(uuid.uuid4()) if account in theirs else account,
        {name: str(uuid.uuid4()) if one in theirs else one for name, one in ids.items()},
    )


@pytest.mark.parametrize("operation", [name for name, rule in RULES.items() if rule.account == "none"])
async def test_account_header_reveals_nothing_on_routes_without_an_account(
    world, victim, attackers, operation
):
    rule = RULES[operation]
    untouched = await world.rows_of(victim.ids["account"], victim.ids["deleted_account"])
    for actor in attackers:
        if rule.allows(actor.name) and rule.needs == "operators_only":
            continue  # operators' reports cover all accounts
        account = victim.ids["account"]
        own = {name: actor.ids[kind] for name, kind in rule.ids.items()}
        answer = await world.send(operation, actor.choosing(account), own)

        assert [name for name, one in victim.ids.items() if one in answer.text] == [], actor.name
        assert answer.status_code in (200, 201, 202, 402, 403, 404), answer.text
    assert await world.rows_of(victim.ids["account"], victim.ids["deleted_account"]) == untouched


LISTS = (
    *("listAccounts", "listMembers", "listInvitations", "listApiKeys", "listBusinessProfiles"),
    *("listRuns", "listLeads", "listLeadAnalyses", "listAnalyses", "listInvoices"),
    *("listWebhookEndpoints", "listWebhookDeliveries"),
)
# The cursor of these operations is a row number within the object that the path names.
WITHIN_ONE = {"getBulkAnalysis"}
OF_OPERATORS = {"listAuditLog", "listCronRuns"}


async def test_every_list_with_a_cursor_is_covered(world):
    taking = {
        operation
        for operation, (_, _, documented) in world.operations.items()
        if any(one["name"] in OPAQUE_QUERIES for one in documented.get("parameters", []))
        and RULES[operation].needs != "operators_only"  # lists for operators cover all accounts
    }

    assert taking - WITHIN_ONE - OF_OPERATORS == {*LISTS, "listCreditTransactions"}


GRANT = "select ledger.grant_credits($1, 1, $2, 'admin_grant')"


@pytest.mark.parametrize("operation", [*LISTS, "listCreditTransactions"])
async def test_cursor_of_another_tenant_returns_only_own_items(world, home, victim, operation):
    for kind in ("invitation", "key", "profile", "run", "lead"):
        await world.thing(kind, victim)
    await world.analysed_again(victim)
    for _ in range(2):
        await world.supplied("invoice", victim)
    await world.made("createAccount", victim.headers, {})
    await world.owner.execute(GRANT, uuid.UUID(victim.ids["account"]), uuid.uuid4().hex)
    cursor = (await page(world, operation, victim, limit=1)).json()["next_cursor"]
    own = (await page(world, operation, home, limit=200)).json()["items"]

    answer = await page(world, operation, home, limit=200, cursor=cursor)

    assert cursor
    assert answer.status_code == 200
    assert [item for item in answer.json()["items"] if item not in own] == []


@pytest.mark.parametrize("operation", ["listLeads", "exportLeads", "listAnalyses"])
async def test_query_with_an_id_of_another_tenant_returns_nothing(world, home, victim, operation):
    _, path, documented = world.operations[operation]
    mine, theirs = [
        await world.made("getLead", tenant.headers, {"lead_id": tenant.ids["lead"]})
        for tenant in (home, victim)
    ]
    tried = [one["name"] for one in documented["parameters"] if one["name"] in TRIED_QUERIES]
    for name in tried:
        own, foreign, unknown = [
            await world.client.get(path, headers=home.headers, params={name: one})
            for one in (mine[TRIED_QUERIES[name]], theirs[TRIED_QUERIES[name]], str(uuid.uuid4()))
        ]
        assert (foreign.status_code, foreign.content) == (200, unknown.content)
        assert len(own.content) > len(foreign.content)
    assert tried


async def page(world, operation, tenant, **query):
    _, path, _ = world.operations[operation]
    url = path.format(account_id=tenant.ids["account"], lead_id=tenant.ids["lead"])
    return await world.client.get(url, headers=tenant.headers, params=query)


async def test_invitation_link_is_rejected_for_other_users(world, victim, attackers):
    await world.thing("invitation", victim)
    token, untouched = world.mailbox.token, await world.rows_of(victim.ids["account"])
    for actor in attackers:
        answer = await world.send("acceptInvitation", actor.headers, {}, token=token)
        by_id = await world.send("acceptInvitation", actor.headers, {}, token=victim.ids["invitation"])
        unknown = await world.send("acceptInvitation", actor.headers, {}, token=str(uuid.uuid4()))

        # The holder of a valid link learns that it is for another user; an id is not a link.
        assert answer.status_code == 403, actor.name
        assert unknown.status_code == (403 if actor.name in KEYS else 404)
        assert seen(by_id) == seen(unknown), actor.name
    assert await world.rows_of(victim.ids["account"]) == untouched
