from dataclasses import dataclass

from features.operations.application.ports import ActLog
from features.operations.domain.acts import ActFilter, AdminAct
from shared.pages import Page, Place, decode_place, page_of


@dataclass(frozen=True, slots=True)
class Acts:
    """What operators did. It is written by the way in (``shared.middleware.audit``), and only read here."""

    log: ActLog

    async def page(self, only: ActFilter, *, cursor: str | None, limit: int) -> Page[AdminAct]:
        acts = await self.log.page(only, before=decode_place(cursor), acts_max=limit + 1)
        return page_of(acts, limit, lambda act: Place(act.at, act.id))
