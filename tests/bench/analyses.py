"""Analyses as a customer requests them, and the providers' share of their time."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import httpx
from customers import Customer
from place import BenchFailed, Place
from world import World

from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.prompting.excerpts import excerpt_of
from features.analysis.domain.prompting.prompts import prompts_for
from features.analysis.domain.scoring.icp_match import fit_of
from features.analysis.domain.scoring.ideal_customer import UNDESCRIBED
from shared.ids import AnalysisType
from simulators.instagram.profiles import kind_of

PATH = "/v1/analyses"
LOOK_INTERVAL_S = 0.02
END_S_MAX = 180.0
RUN = "select status, outcome, error, ended_at from public.runs where account_id = $1 and id = $2"
CHILDREN = """
select count(*) from public.runs where account_id = $1 and parent_id = $2 and status = 'completed'
"""


def usernames() -> Iterator[str]:
    """Yields usernames of ordinary profiles: of all others a share is private or missing."""
    while True:
        name = f"bench_{uuid4().hex[:16]}"
        if kind_of(name) == "ordinary":
            yield name


async def begin(
    http: httpx.AsyncClient, customer: Customer, username: str, analysis_type: AnalysisType
) -> UUID:
    body = {
        "username": username,
        "type": analysis_type,
        "business_profile_id": customer.business_profile_id,
    }
    return await _begin(http, customer, PATH, body)


async def _begin(http: httpx.AsyncClient, customer: Customer, path: str, body: dict[str, object]) -> UUID:
    answer = await http.post(path, headers=customer.headers, json=body)
    if answer.status_code != httpx.codes.ACCEPTED:
        raise BenchFailed(f"{path} answers {answer.status_code}: {answer.text}")
    return UUID(answer.json()["run_id"])


@dataclass(frozen=True, slots=True)
class Analyses:
    """Analyses of one customer, on a server that also runs them. Milliseconds are from the request to the end
    time in the run's row, by the clock of this machine.
    """

    place: Place
    http: httpx.AsyncClient
    customer: Customer

    async def single_ms(self, username: str, analysis_type: AnalysisType) -> float:
        began_at = datetime.now(UTC)
        run_id = await begin(self.http, self.customer, username, analysis_type)
        return await self._ended_ms(run_id, began_at)

    async def bulk_ms(self, names: Sequence[str], analysis_type: AnalysisType) -> float:
        began_at = datetime.now(UTC)
        body = {
            "usernames": list(names),
            "type": analysis_type,
            "business_profile_id": self.customer.business_profile_id,
        }
        run_id = await _begin(self.http, self.customer, f"{PATH}/bulk", body)
        lasted_ms = await self._ended_ms(run_id, began_at)
        completed = await self.place.owner.fetchval(CHILDREN, self.customer.account_id, run_id)
        if completed != len(names):
            raise BenchFailed(f"Of {len(names)} analyses in bulk, {completed} were completed.")
        return lasted_ms

    async def _ended_ms(self, run_id: UUID, began_at: datetime) -> float:
        try:
            async with asyncio.timeout(END_S_MAX):
                while True:
                    run = await self.place.owner.fetchrow(RUN, self.customer.account_id, run_id)
                    if run["ended_at"] is not None:
                        break
                    await asyncio.sleep(LOOK_INTERVAL_S)
        except TimeoutError:
            raise BenchFailed(f"The run {run_id} has not ended after {END_S_MAX:.0f} s.") from None
        if run["status"] != "completed":
            raise BenchFailed(f"The run {run_id} ended as {run['outcome']} ({run['error']}).")
        return (run["ended_at"] - began_at).total_seconds() * 1_000


async def providers_ms(world: World, username: str, analysis_type: AnalysisType) -> float:
    """Returns the time of one profile read and then the slowest of its prompts, without any other work."""
    cost_owner, application = world.cost_owner, world.application
    began_s = time.perf_counter()
    read = await application.resources.providers.profiles.read(username, analysis_type, cost_owner=cost_owner)
    lasted_s = time.perf_counter() - began_s
    facts = facts_of(read.profile, read.scraped_at)
    fit = fit_of(read.profile, UNDESCRIBED.ideal_customer)
    excerpt = excerpt_of(analysis_type, read.profile, facts, fit)
    prompts = prompts_for(analysis_type, UNDESCRIBED, facts, fit, excerpt, cost_owner)
    began_s = time.perf_counter()
    await asyncio.gather(
        *(application.resources.providers.gateway.complete(prompt) for prompt in prompts.values())
    )
    return (lasted_s + time.perf_counter() - began_s) * 1_000
