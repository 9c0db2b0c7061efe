import dataclasses
from dataclasses import replace

import httpx
import pytest

from core.app import create_app
from core.wiring.bootstrap import local_issuer
from tests.api.tenancy.world import SCOPES, Mailbox, Till, World


@pytest.fixture(scope="package")
async def world(application, place, owner, stripe_control):
    mailbox = Mailbox()
    invitations = dataclasses.replace(application.dependencies["invitations"], mail=mailbox)
    app = create_app(application.replacing(invitations=invitations))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        document = (await client.get("/schema/openapi.json")).json()
        operations = {
            documented["operationId"]: (method, path, documented)
            for path, methods in document["paths"].items()
            for method, documented in methods.items()
        }
        schemas = document["components"]["schemas"]
        till = Till(application.resources, stripe_control)
        yield World(client, owner, local_issuer(place.settings), mailbox, till, operations, schemas)


@pytest.fixture(scope="package")
async def home(world):
    """The attackers' own tenant."""
    return await world.furnished(await world.tenant())


@pytest.fixture(scope="package")
async def victim(world):
    """A tenant that no attacker belongs to."""
    return await world.furnished(await world.tenant("victim"))


@pytest.fixture(scope="package")
async def attackers(world, home):
    """All actors except the keys that lack one scope (see ``narrow_keys``)."""
    roles = [await world.joined(home, role) for role in ("admin", "member", "viewer")]
    operator = await world.tenant("operator")
    operator = replace(
        operator,
        headers={
            **operator.headers,
            **world.person("operator", email=operator.ids["email"], is_operator=True).headers,
        },
    )
    lost = await outsider(world)
    unchosen = {name: value for name, value in lost.headers.items() if name == "Authorization"}
    return [
        home,
        *roles,
        await world.furnished(operator),
        lost,
        replace(lost, name="outsider who chooses", headers=unchosen),
        await world.key(home, "key", SCOPES),
    ]


async def outsider(world):
    """Creates a user whose only account is deleted and who still selects it."""
    tenant = await world.furnished(await world.tenant("outsider"))
    await world.made("deleteAccount", tenant.headers, {"account_id": tenant.ids["account"]})
    return tenant


@pytest.fixture(scope="package")
async def narrow_keys(world, home):
    """Maps each scope to a key that has all other scopes."""
    return {
        scope: await world.key(home, "narrow key", [other for other in SCOPES if other != scope])
        for scope in SCOPES
    }
