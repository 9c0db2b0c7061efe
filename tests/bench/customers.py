"""Customers of a server, without limits by credits or plan."""

import itertools
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

import asyncpg
import httpx
from place import BenchFailed, Place

from core.wiring.bootstrap import local_issuer
from infrastructure.identity.tokens import user_id_of

TOKEN_LIFETIME = timedelta(hours=12)
CREDITS = 1_000_000_000
# The concurrency of the largest plan on sale; all other limits are beyond the reach of a measurement.
PLAN = "bench"
MAKE_PLAN = """
insert into public.plans (name, queue_priority, runs_at_once, bulk_max, light_per_hour)
values ('bench', 1, 20, 1000, 1000000000) on conflict (name) do nothing
"""
SMALL_PLAN = "free"

_numbers = itertools.count()


class Customer(NamedTuple):
    account_id: UUID
    token: str
    business_profile_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


async def make_account(owner: asyncpg.Connection, *, plan: str = PLAN, user_id: UUID | None = None) -> UUID:
    """Creates an account with credits on that plan."""
    user_id = user_id or uuid4()
    await owner.execute(MAKE_PLAN)
    await owner.execute("select private.sign_up_if_new($1, '', 'Bench', 0)", user_id)
    account_id = await owner.fetchval("select account_id from public.sign_ups where user_id = $1", user_id)
    await owner.execute("update public.accounts set plan = $1 where id = $2", plan, account_id)
    await owner.execute("select ledger.grant_credits($1, $2, 'bench', 'admin_grant')", account_id, CREDITS)
    return account_id


async def make_customers(place: Place, address: str, count: int) -> list[Customer]:
    """Creates customers, each with its own account and business."""
    issuer = local_issuer(place.settings)
    customers: list[Customer] = []
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        for number in itertools.islice(_numbers, count):
            email = f"customer-{number}@example.com"
            account_id = await make_account(place.owner, user_id=user_id_of(email))
            token = issuer.token(email, lifetime=TOKEN_LIFETIME)
            answer = await http.post(
                "/v1/business-profiles",
                headers={"Authorization": f"Bearer {token}"},
                json={"name": f"Bakery {number}", "offering": "Bread, every morning."},
            )
            if answer.is_error:
                raise BenchFailed(f"No business profile: {answer.text}")
            customers.append(Customer(account_id, token, answer.json()["id"]))
    return customers
