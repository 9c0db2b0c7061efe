"""Every route for every role in its own account, compared with the role table: allowed operations succeed."""

import pytest

from tests.api.tenancy.rules import RULES
from tests.api.tenancy.world import SCOPES

ACTORS = ("owner", "admin", "member", "viewer", "operator", "key", "narrow key")


@pytest.fixture(scope="package")
def people(world):
    """One user per role, who joins one account after another."""
    return {name: world.person(name) for name in ("owner", "admin", "member", "viewer")}


async def actor_of(world, tenant, name, rule, people):
    if name == "operator":
        return world.person("operator", is_operator=True)
    if name == "key":
        return await world.key(tenant, name, SCOPES)
    if name == "narrow key":
        return await world.key(tenant, name, [one for one in SCOPES if one != rule.needs])
    return await world.joined(tenant, name, people[name])


async def ids_for(world, tenant, actor, rule):
    """Creates new objects for each case, because cases delete them."""
    ids = {name: await world.thing(kind, tenant) for name, kind in rule.things.items()}
    if rule.kind_of_account == "deleted_account" and actor.name == "owner":
        ids["account_id"] = await world.thing("deleted_account", actor)
    for operation in rule.before:
        operator = world.person("operator", is_operator=True)
        await world.made(operation, operator.headers, ids)
    if rule.has and rule.allows(actor.name):
        await world.supplied(rule.has, tenant)
    return ids


async def changes_for(world, tenant, actor, rule):
    if "preview_id" in rule.body and rule.allows(actor.name):
        preview = await world.made("previewPlanChange", tenant.headers, {})
        return {"preview_id": preview["preview_id"]}
    if "token" not in rule.body or "email" not in actor.ids:
        return {}
    tenant = await world.tenant("inviter")
    at = {"account_id": tenant.ids["account"]}
    await world.made("inviteMember", tenant.headers, at, email=actor.ids["email"])
    return {"token": world.mailbox.token}


def agrees(rule, name, answer):
    if name in rule.not_for:
        return answer.status_code == 404
    return answer.is_success if rule.allows(name) else answer.status_code == 403


@pytest.mark.parametrize("operation", RULES)
async def test_each_role_has_the_permissions_of_the_role_table(world, people, victim, operation):
    rule = RULES[operation]
    documented = set(world.operations[operation][2]["responses"])
    for name in ACTORS:
        if name == "operator" and rule.needs not in ("operators_only", "public", "signed_in"):
            continue  # in their own accounts operators are ordinary users
        tenant = await world.tenant()
        actor = await actor_of(world, tenant, name, rule, people)
        ids = await ids_for(world, tenant, actor, rule)
        changes = await changes_for(world, tenant, actor, rule)

        answer = await world.send(operation, actor.headers, ids, **changes)

        assert agrees(rule, name, answer), (name, answer.status_code, answer.text)
        assert str(answer.status_code) in documented, name
        # operators' reports cover all accounts
        if not (rule.allows(name) and rule.needs == "operators_only"):
            assert [one for one in victim.ids.values() if one in answer.text] == []
