"""Tenants with a row of every kind, and all the actors that could request them."""

import re
import uuid
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

import httpx

from core.wiring.slice import Resources
from features.auth.domain.roles import Scope
from infrastructure.database.leads.leads import PostgresAnalysisResults
from infrastructure.identity.tokens import user_id_of
from tests.api.billing.customers import Customer
from tests.integration.database.rows import ANY_PROFILE, NEW_EVENT, NEW_MODEL_CALL, new_analysis
from tests.system.stripe_events.stripe_world import event_of, signed
from tests.unit.features.analysis.examples import LEAD_KEY, analysis, changed

KINDS = {
    *("account", "deleted_account", "member", "invitation", "key", "profile", "deleted_profile"),
    *("run", "cancelled_run", "bulk", "anonymous_token", "lead", "deleted_lead", "analysis"),
    *("checkout", "event"),
    *("endpoint", "delivery"),
    *("cron_job", "cron_run"),  # global, not of a tenant
}
NEW_INVOICE = """
insert into public.invoices (
    account_id, stripe_invoice_id, status, due_cents, paid_cents, currency, created_at, seen_at
) values ($1, 'in_' || $2::text, 'paid', 2900, 2900, 'usd', now(), now())
"""
NEW_RUN = "select runs.start($1, $2, 'x', '{}', 0, 'analysis', 'no_worker')"
CRON_JOB = "cache-expiry"
NEW_CRON_RUN = f"""
select (run).id from scheduling.claim(
    '{CRON_JOB}', date_trunc('hour', now()), gen_random_uuid(), 'schedule', false, null)
"""
SCOPES = get_args(Scope)
TENANT_TABLES = """
select format('%I.%I', table_schema, table_name) from information_schema.columns
join information_schema.tables using (table_schema, table_name)
where column_name = 'account_id' and table_type = 'BASE TABLE' and table_schema <> 'traffic' order by 1
"""  # data points in traffic identify the caller, not an owner


@dataclass(frozen=True)
class Actor:
    """A caller and the ids of its own objects. The account of an API key is part of the key."""

    name: str
    headers: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def choosing(self, account_id):
        return {**self.headers, "Oslira-Account": str(account_id)}


@dataclass
class Mailbox:
    """Replaces the mail service."""

    links: list[str] = field(default_factory=list)

    async def send(self, email, *, link, account_name, inviter):
        del email, account_name, inviter
        self.links.append(link)

    @property
    def token(self):
        (token,) = parse_qs(urlsplit(self.links[-1]).query)["token"]
        return token


@dataclass
class Till:
    """Resources for paying with the simulated Stripe."""

    resources: Resources
    control: httpx.AsyncClient


@dataclass
class World:
    client: httpx.AsyncClient
    owner: Any  # connection of the tables' owner
    issuer: Any
    mailbox: Mailbox
    till: Till
    # id: method, path, operation object of the document
    operations: dict[str, tuple[str, str, dict[str, Any]]]
    schemas: dict[str, Any]

    def person(self, name, *, email=None, is_operator=False):
        email = email or f"{name}-{uuid.uuid4().hex}@example.com"
        token = self.issuer.token(email, lifetime=timedelta(hours=1), is_operator=is_operator)
        return Actor(name, {"Authorization": f"Bearer {token}"}, {"email": email})

    async def send(self, operation, headers, ids, **changes):
        """Sends the document's example to the URL built from the ids; ids also replace fields of the
        example.
        """
        method, path, documented = self.operations[operation]
        url = re.sub(r"\{(\w+)\}", lambda match: str(ids[match[1]]), path)
        if operation == "receiveStripeEvent":  # authenticated by its signature
            event = event_of("customer.created")
            return await self.client.post(url, headers={**headers, **signed(event)}, content=event)
        content = documented.get("requestBody", {}).get("content", {})
        body = None
        if content:
            example = content["application/json"]["examples"]["example"]["value"]
            body = {**example, **{name: ids[name] for name in ids if name in example}, **changes}
        return await self.client.request(method, url, headers=headers, json=body)

    async def made(self, operation, headers, ids, **changes):
        answer = await self.send(operation, headers, ids, **changes)
        assert answer.is_success, (operation, answer.text)
        return answer.json() if answer.content else {}

    async def tenant(self, name="owner"):
        """Creates a user whose account has a plan with high limits."""
        person = self.person(name)
        account_id = (await self.made("getMe", person.headers, {}))["account"]["id"]
        await self.owner.execute("update accounts set plan = 'agency' where id = $1", uuid.UUID(account_id))
        return replace(person, headers=person.choosing(account_id), ids={**person.ids, "account": account_id})

    async def joined(self, tenant, name, person=None):
        """Adds a member with the role ``name`` who selects the tenant's account."""
        person = person or self.person(name)
        await self.made("verifyToken", person.headers, {})
        await self.owner.execute(
            "insert into memberships (account_id, user_id, role) values ($1, $2, $3)",
            uuid.UUID(tenant.ids["account"]),
            user_id_of(person.ids["email"]),
            name,
        )
        return Actor(name, person.choosing(tenant.ids["account"]), {**tenant.ids, **person.ids})

    async def key(self, tenant, name, scopes):
        made = await self.made("createApiKey", tenant.headers, {}, scopes=scopes)
        return Actor(name, {"Authorization": f"Bearer {made['key']}"}, tenant.ids)

    async def thing(self, kind, tenant):
        """Creates an object of the tenant and returns its id."""
        at = {"account_id": tenant.ids["account"]}
        if kind == "member":
            return str(user_id_of((await self.joined(tenant, "member")).ids["email"]))
        if kind == "invitation":
            email = f"{uuid.uuid4().hex}@example.com"
            return (await self.made("inviteMember", tenant.headers, at, email=email))["id"]
        if kind == "key":
            return (await self.made("createApiKey", tenant.headers, {}))["id"]
        if kind.endswith("profile"):
            made = await self.made("createBusinessProfile", tenant.headers, {})
            if kind == "deleted_profile":
                await self.made("deleteBusinessProfile", tenant.headers, {"profile_id": made["id"]})
            return made["id"]
        if kind == "deleted_account":
            made = await self.made("createAccount", tenant.headers, {})
            await self.made("deleteAccount", tenant.headers, {"account_id": made["id"]})
            return made["id"]
        return tenant.ids["account"] if kind == "account" else await self.started(kind, tenant)

    async def supplied(self, kind, tenant):
        """Creates the billing state that some operations need."""
        account_id = uuid.UUID(tenant.ids["account"])
        customer = Customer(
            self.client, tenant.headers, account_id, self.till.resources, self.till.control, self.owner
        )
        if kind == "invoice":
            key = uuid.uuid4().hex
            await self.owner.execute(NEW_INVOICE, account_id, key)
        elif kind == "customer":
            await self.made("openCheckout", tenant.headers, {})
        else:
            await customer.subscribe("growth")
        if kind == "cancellation":
            await customer.done("/cancel")

    async def lead_of(self, tenant, kind):
        """Creates a lead or its analysis, with a business profile if the tenant has none."""
        assert kind in ("lead", "deleted_lead", "analysis"), f"cannot make a {kind}"
        account_id = uuid.UUID(tenant.ids["account"])
        if not await self.owner.fetchval(ANY_PROFILE, account_id):
            await self.made("createBusinessProfile", tenant.headers, {})
        made, lead_id = await new_analysis(self.owner, account_id, username=f"n{uuid.uuid4().hex[:20]}")
        if kind == "deleted_lead":
            await self.made("deleteLead", tenant.headers, {"lead_id": lead_id})
        return str(made.id if kind == "analysis" else lead_id)

    async def analysed_again(self, tenant):
        """Adds a second analysis to the tenant's lead."""
        row = await self.owner.fetchrow(
            "select account_id, username, business_profile_id from leads where id = $1",
            uuid.UUID(tenant.ids["lead"]),
        )
        await PostgresAnalysisResults(self.owner).save(analysis(changed(LEAD_KEY, **row)))

    async def started(self, kind, tenant):
        match kind:
            case "bulk":
                business = {"business_profile_id": await self.thing("profile", tenant)}
                made = (await self.made("startBulkAnalysis", tenant.headers, business))["run_id"]
            case "checkout":
                made = (await self.made("openCheckout", tenant.headers, {}))["checkout_id"]
            case "anonymous_token":
                made = (await self.made("startAnonymousAnalysis", {}, {}))["token"]
            case "run" | "cancelled_run":
                made = await self.run_of(tenant, kind)
            case "event":
                new_event = f"{NEW_EVENT} returning stripe_event_id"
                made = await self.owner.fetchval(new_event, uuid.UUID(tenant.ids["account"]))
            case "cron_job" | "cron_run":
                made = await self.cron_run(kind)
            case "endpoint" | "delivery":
                made = await self.stored(tenant, kind)
            case _:
                made = await self.lead_of(tenant, kind)
        return made

    async def stored(self, tenant, kind):
        """Creates a webhook endpoint, or two deliveries to it, so that a list of one item has a next page."""
        endpoint = await self.made("createWebhookEndpoint", tenant.headers, {})
        if kind == "endpoint":
            return endpoint["id"]
        at = {"endpoint_id": endpoint["id"]}
        await self.made("testWebhookEndpoint", tenant.headers, at)
        return (await self.made("testWebhookEndpoint", tenant.headers, at))["id"]

    async def cron_run(self, kind):
        """Claims the slot of the current hour."""
        run_id = await self.owner.fetchval(NEW_CRON_RUN)
        return CRON_JOB if kind == "cron_job" else str(run_id)

    async def run_of(self, tenant, kind):
        """Creates a run with a recorded model call."""
        account_id, run_id = uuid.UUID(tenant.ids["account"]), uuid.uuid4()
        await self.owner.execute(NEW_MODEL_CALL, account_id, run_id)
        await self.owner.execute(NEW_RUN, account_id, run_id)
        if kind == "cancelled_run":
            await self.owner.execute("select runs.request_cancel($1, $2)", account_id, run_id)
        return str(run_id)

    async def furnished(self, tenant):
        """Adds one object of every kind, so that every route can find one."""
        return replace(tenant, ids={**tenant.ids, **{kind: await self.thing(kind, tenant) for kind in KINDS}})

    async def rows_of(self, *account_ids):
        """Returns all rows of the accounts, by table, as text."""
        ids = [uuid.UUID(account_id) for account_id in account_ids]
        tables = [(table, "account_id") for (table,) in await self.owner.fetch(TENANT_TABLES)]
        return {
            table: sorted(
                await self.owner.fetchval(
                    f"select coalesce(array_agg(t::text), '{{}}') from {table} as t where {column} = any($1)",
                    ids,
                )
            )
            for table, column in [*tables, ("public.accounts", "id")]
        }
