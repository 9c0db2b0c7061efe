"""Requests that send every secret to valid and invalid places."""

import dataclasses
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx

from core.app import create_app
from core.wiring.bootstrap import local_issuer
from features.credits.application.balances import Balances
from tests.system.canaries.net import Canaries

ANYWHERE = str(uuid.uuid4())


def signature(token):
    """Returns the secret part of a token; the rest only identifies the user."""
    return token.rpartition(".")[2]


class Quoting:
    """Port that fails with an error message containing the secrets."""

    def __init__(self, canaries):
        self.canaries = canaries

    async def balance(self, caller):
        raise RuntimeError(f"{caller} failed near " + " and ".join(self.canaries))


@dataclass
class Journey:
    application: Any
    place: Any
    canaries: Canaries
    wholes: dict[str, str]
    mails: list[str] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)
    # index of the response: the secret that it may contain
    may_show: dict[int, str] = field(default_factory=dict)

    async def send(self, email, *, link, account_name, inviter):
        """Stands in for the mail service; only the recipient reads the link."""
        del email, account_name, inviter
        self.mails.append(link)

    def keep(self, name, whole, secret=None):
        self.wholes[name] = self.canaries.keep(name, whole, secret)
        return whole

    def token(self, name, email, **options):
        lifetime = options.pop("lifetime", timedelta(hours=1))
        token = local_issuer(self.place.settings).token(email, lifetime=lifetime, **options)
        self.keep(name, token, signature(token))
        return {"Authorization": f"Bearer {token}"}

    def client(self, **changes):
        invitations = dataclasses.replace(self.application.dependencies["invitations"], mail=self)
        app = create_app(self.application.replacing(invitations=invitations, **changes))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        hooks = {"response": [self.note]}
        return httpx.AsyncClient(transport=transport, base_url="http://test", event_hooks=hooks)

    async def note(self, answer):
        await answer.aread()
        self.answers.append(answer)

    def shown(self, name, answer):
        """Registers a new key, whose secret only this response may contain."""
        key = answer.json()["key"]
        self.keep(name, key, key.rpartition("_")[2])
        self.may_show[self.answers.index(answer)] = name
        return {"Authorization": f"Bearer {key}"}

    async def through_front_doors(self, client):
        ada, expired = self.token("access token", "ada@example.com"), timedelta(hours=-1)
        self.token("expired token", "ada@example.com", lifetime=expired)
        me = (await client.get("/v1/me", headers=ada)).json()
        account = f"/v1/accounts/{me['account']['id']}"
        body = {"name": "k", "scopes": ["account:read"]}
        twice = {**ada, "Idempotency-Key": self.keep("key's Idempotency-Key", f"twice-{uuid.uuid4()}")}
        made = await client.post("/v1/api-keys", headers=twice, json=body)
        key = self.shown("API key", made)
        self.shown("API key", await client.post("/v1/api-keys", headers=twice, json=body))
        rotated = await client.post(f"/v1/api-keys/{made.json()['id']}/rotate", headers=ada, json={})
        self.shown("rotated API key", rotated)
        await client.post(f"{account}/invitations", headers=ada, json={"email": "them@example.com"})
        self.keep("invitation token", self.mails[-1].partition("token=")[2])
        once = {"Idempotency-Key": self.keep("Idempotency-Key", f"once-{uuid.uuid4()}")}
        for _ in range(2):
            await client.post("/v1/accounts", headers={**ada, **once}, json={"name": "Once"})
        await client.post("/v1/accounts", headers={**ada, **once}, json={"name": "Twice"})
        await client.get("/v1/credits/balance", headers=key)
        await client.delete(f"{account}/members/{me['id']}", headers=ada)
        await client.post(f"/v1/admin{account[3:]}/credits/grants", headers=ada, json={})
        await client.get("/health/ready", headers=ada)
        return ada

    async def through_wrong_doors(self, client, ada):
        for secret in (whole.replace("\n", " ") for whole in self.wholes.values()):
            await self.in_headers(client, ada, secret)
            await self.in_addresses(client, ada, secret)
            await self.in_bodies(client, ada, secret)

    async def in_headers(self, client, ada, secret):
        """X-Request-Id is left out, because responses and logs repeat it by design."""
        for kind in ("Bearer", "Basic", "Token", "bearer  x", ""):
            await client.get("/v1/me", headers={"Authorization": f"{kind} {secret}".strip()})
        for name in ("Oslira-Account", "If-None-Match", "Cookie", "Origin", "Accept"):
            await client.get(f"/v1/business-profiles/{ANYWHERE}", headers={**ada, name: secret})
        for name in ("Idempotency-Key", "Content-Type"):
            headers = {**ada, name: f"{secret} \u00e9".encode()}
            await client.post("/v1/accounts", headers=headers, content=b"{}")

    async def in_addresses(self, client, ada, secret):
        for name in ("limit", "cursor", "kind", "since", "until", "token", "api_key", secret):
            await client.get("/v1/credits/transactions", headers=ada, params={name: secret})
        part = quote(secret, safe="")
        for path in (f"/{part}", f"/v1/accounts/{part}", f"/v1/api-keys/{part}/rotate", f"/schema/{part}"):
            await client.delete(path, headers=ada)

    async def in_bodies(self, client, ada, secret):
        own = (await client.get("/v1/accounts", headers=ada)).json()["items"][0]["id"]
        bodies: list[tuple[str, object]] = [
            ("/v1/invitations/accept", {"token": secret}),
            ("/v1/invitations/accept", {"token": secret, secret: secret}),
            ("/v1/invitations/accept", {"token": [secret]}),
            ("/v1/accounts", {"name": {secret: secret}}),
            ("/v1/accounts", secret),
            ("/v1/api-keys", {"name": "k", "scopes": [secret], "mode": secret}),
            ("/v1/api-keys", {"name": "k", "scopes": ["account:read"], "mode": secret}),
            ("/v1/api-keys", {"name": "k", "scopes": ["account:read"], "project": f"{secret}!"}),
            ("/v1/api-keys", {"name": "k", "scopes": ["account:read"], "expires_at": secret}),
            (f"/v1/accounts/{own}/invitations", {"email": secret, "role": secret}),
            ("/v1/business-profiles", {"name": "x", "website": f"https://u:{secret}@example.com"}),
            ("/v1/business-profiles", {"name": "x", "language": secret, "tone": f"\0{secret}"}),
        ]
        for path, body in bodies:
            await client.post(path, headers={**ada, "Oslira-Account": own}, json=body)
        for content in (
            secret,
            f'{{"name": "{secret}',
            f'{{"name": {secret}}}',
            f'["{secret}"]]',
        ):
            headers = {**ada, "Content-Type": "application/json"}
            await client.post("/v1/accounts", headers=headers, content=content)

    async def through_failures(self, ada):
        # A failing request can quote all secrets except the Idempotency-Key of another request.
        quoted = [whole for name, whole in self.wholes.items() if name != "key's Idempotency-Key"]
        headers = {**ada, "Idempotency-Key": self.wholes["Idempotency-Key"]}
        async with self.client(balances=Balances(Quoting(quoted))) as client:
            await client.get("/v1/credits/balance", headers=headers)

    async def without_database(self, client, ada):
        for path in ("/v1/credits/balance", "/v1/me", "/health/ready"):
            await client.get(path, headers=ada)
        headers = {**ada, "Idempotency-Key": self.wholes["Idempotency-Key"]}
        await client.post("/v1/accounts", headers=headers, json={"name": "Once"})
        await client.get("/v1/me", headers={"Authorization": f"Bearer {self.wholes['API key']}"})
