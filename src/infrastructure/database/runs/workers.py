from datetime import timedelta
from typing import LiteralString

from features.runs.application.ports import HeartbeatReply, WorkerRegistry
from infrastructure.database.clients import AdminClient

REGISTER: LiteralString = "select traffic.register_worker($1, $2, $3)"
HEARTBEAT: LiteralString = "select * from traffic.heartbeat($1, $2, $3)"
DEREGISTER: LiteralString = "select traffic.deregister_worker($1)"


class PostgresWorkerRegistry(WorkerRegistry):
    """Needs its own connection, so that heartbeats do not wait behind the queries of the runs."""

    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def register(self, executor: str, *, host: str, queues: list[str]) -> None:
        await self._session.fetch(REGISTER, executor, host, queues)

    async def heartbeat(self, executor: str, *, gone_after_s: float, is_draining: bool) -> HeartbeatReply:
        (row,) = await self._session.fetch(HEARTBEAT, executor, timedelta(seconds=gone_after_s), is_draining)
        return HeartbeatReply(
            is_alive=row["is_alive"], cancels=frozenset(row["cancels"]), orphans=frozenset(row["orphans"])
        )

    async def deregister(self, executor: str) -> None:
        await self._session.fetch(DEREGISTER, executor)
