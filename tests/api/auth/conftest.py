"""Users, accounts and API keys for authorization tests."""

import uuid
from dataclasses import dataclass, field

import httpx
import pytest

from infrastructure.identity.tokens import user_id_of


@dataclass
class Person:
    """A signed-in user with an HTTP client."""

    client: httpx.AsyncClient
    email: str
    headers: dict[str, str]
    account_id: str = ""
    user_id: uuid.UUID = field(init=False)

    def __post_init__(self):
        self.user_id = user_id_of(self.email)

    def choosing(self, account_id):
        return Person(
            self.client, self.email, {**self.headers, "Oslira-Account": str(account_id)}, str(account_id)
        )

    async def request(self, method, path, **options):
        headers = {**self.headers, **options.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **options)

    async def get(self, path, **options):
        return await self.request("GET", path, **options)

    async def post(self, path, json=None, **options):
        return await self.request("POST", path, json=json, **options)

    async def patch(self, path, json, **options):
        return await self.request("PATCH", path, json=json, **options)

    async def delete(self, path, **options):
        return await self.request("DELETE", path, **options)


@pytest.fixture
def person(client, bearer):
    """Factory of new users, each with its own account."""

    async def make(email=None):
        email = email or f"{uuid.uuid4().hex}@example.com"
        person = Person(client, email, bearer(email))
        person.account_id = (await person.get("/v1/me")).json()["account"]["id"]
        return person

    return make


@pytest.fixture
async def ada(person):
    return await person()


@pytest.fixture
async def stranger(person):
    return await person()


@pytest.fixture
def join(owner, person):
    """Factory of new users who are members of the account with that role and have chosen it."""

    async def make(account_id, role):
        newcomer = await person()
        await owner.execute(
            "insert into memberships (account_id, user_id, role) values ($1, $2, $3)",
            uuid.UUID(account_id),
            newcomer.user_id,
            role,
        )
        return newcomer.choosing(account_id)

    return make


@pytest.fixture
def key_of(client):
    """Factory of API keys for a user's account, each with an HTTP client."""

    async def make(person, *scopes, **settings):
        body = {"name": "key", "scopes": scopes or ["credits:read"], **settings}
        made = (await person.post("/v1/api-keys", body)).json()
        key = Person(client, "", {"Authorization": f"Bearer {made['key']}"}, person.account_id)
        key.user_id = uuid.UUID(made["id"])
        return key

    return make
