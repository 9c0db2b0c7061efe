"""Cost records of one scrape, one for each run."""

import math
import time
from dataclasses import dataclass

from features.costs.application.ports import CallLog
from features.costs.domain.prices import PriceBook
from features.costs.domain.provider_calls import ScrapeCall
from infrastructure.scraping.apify_port import ActorRun
from shared.clock import Clock
from shared.llm import CostOwner

NANODOLLARS = 10**9


@dataclass(frozen=True, slots=True)
class ScrapeCostRecorder:
    log: CallLog
    prices: PriceBook
    now: Clock
    provider: str
    username: str
    posts_asked: int
    spender: CostOwner
    is_simulated: bool

    async def write(
        self,
        outcome: str,
        *,
        begun_at_s: float,
        cost: tuple[int | None, bool],
        posts_found: int = 0,
        run_id: str | None = None,
    ) -> None:
        """``begun_at_s``: by the monotonic clock. ``cost``: nanodollars and whether they are an estimate."""
        nanodollars, is_estimated = cost
        await self.log.record_scrape(
            ScrapeCall(
                at=self.now(),
                spender=self.spender,
                provider=self.provider,
                username=self.username,
                outcome=outcome,
                posts_asked=self.posts_asked,
                posts_found=posts_found,
                cost_nanodollars=nanodollars,
                is_estimated=is_estimated,
                duration_ms=(time.monotonic() - begun_at_s) * 1_000,
                is_simulated=self.is_simulated,
                provider_run_id=run_id,
            )
        )

    def cost_of_run(self, run: ActorRun | None, items_total: int | None = None) -> tuple[int | None, bool]:
        """The cost reported by Apify, otherwise its price per item, otherwise our price per run."""
        if run is not None and run.usd is not None and math.isfinite(run.usd) and run.usd >= 0:
            return round(run.usd * NANODOLLARS), not run.is_over
        if run is not None and run.item_usd is not None and items_total is not None:
            return round(run.item_usd * items_total * NANODOLLARS), True
        return self.prices.of_units(self.provider, "run", 1, self.now()), True
