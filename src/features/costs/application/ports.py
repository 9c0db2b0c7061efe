from typing import Protocol

from features.costs.domain.calls import ModelCall, ScrapeCall


class CallLog(Protocol):
    """Durable when it returns. While the database is away calls are kept and written later. Never fails,
    and is never interrupted: money that is spent is written down.
    """

    async def record_model_call(self, call: ModelCall) -> None: ...

    async def record_scrape(self, call: ScrapeCall) -> None: ...
