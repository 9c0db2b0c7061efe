from typing import Any, LiteralString
from uuid import UUID

from asyncpg import Record

from features.webhooks.application.ports import EndpointStore
from features.webhooks.domain.endpoint import ENDPOINTS_MAX, Endpoint, EndpointContent, EndpointId
from features.webhooks.domain.errors import TooManyEndpoints
from infrastructure.database.clients import Database
from shared.caller import AccountNotFound, Caller
from shared.ids import AccountId
from shared.pagination import LATEST, Cursor

GET: LiteralString = "select * from public.webhook_endpoints where account_id = $1 and id = $2"
LIST: LiteralString = """
select * from public.webhook_endpoints
where account_id = $1 and (created_at, id) < ($2, $3)
order by created_at desc, id desc
limit $4
"""
ADD: LiteralString = """
select a.outcome, (a.endpoint).* from webhooks.add_endpoint($1, $2, $3, $4, $5, $6, $7, $8) as a
"""
CHANGE: LiteralString = """
update public.webhook_endpoints
set url = $3, host = $4, types = $5, description = $6, updated_at = clock_timestamp()
where account_id = $1 and id = $2
returning *
"""
ROTATE: LiteralString = """
update public.webhook_endpoints as e
set secret_version = e.secret_version + case when e.rotation_id = $3 then 0 else 1 end,
    rotated_at = case when e.rotation_id = $3 then e.rotated_at else clock_timestamp() end,
    updated_at = case when e.rotation_id = $3 then e.updated_at else clock_timestamp() end,
    rotation_id = $3
where account_id = $1 and id = $2
returning *
"""
ENABLE: LiteralString = """
update public.webhook_endpoints
set status = 'active', disabled_reason = null, failing_since = null, updated_at = clock_timestamp()
where account_id = $1 and id = $2
returning *
"""
DISABLE: LiteralString = """
update public.webhook_endpoints
set status = 'disabled', disabled_reason = coalesce(disabled_reason, 'by_hand'),
    updated_at = clock_timestamp()
where account_id = $1 and id = $2
returning *
"""
FAIL_PENDING: LiteralString = "select webhooks.fail_pending($1, $2)"
REMOVE: LiteralString = "select webhooks.remove_endpoint($1, $2) as is_removed"


class PostgresEndpoints(EndpointStore):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("webhook endpoints")

    async def get(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint | None:
        rows = await self._database.fetch_for(caller, GET, endpoint_id)
        return _endpoint(rows[0]) if rows else None

    async def list(self, caller: Caller, *, after: Cursor | None, endpoints_max: int) -> list[Endpoint]:
        after = after or LATEST
        rows = await self._database.fetch_for(caller, LIST, after.at, after.id, endpoints_max)
        return [_endpoint(row) for row in rows]

    async def add(
        self,
        account_id: AccountId,
        endpoint_id: EndpointId,
        content: EndpointContent,
        host: str,
        created_by: str,
    ) -> Endpoint:
        (row,) = await self._session.fetch(
            ADD,
            account_id,
            endpoint_id,
            content.url,
            host,
            content.types,
            content.description,
            created_by,
            ENDPOINTS_MAX,
        )
        if row["outcome"] == "unknown_account":
            raise AccountNotFound
        if row["outcome"] == "too_many":
            raise TooManyEndpoints(limit=ENDPOINTS_MAX)
        return _endpoint(row)

    async def change(self, endpoint: Endpoint, content: EndpointContent, host: str) -> Endpoint | None:
        return await self._updated(CHANGE, endpoint, content.url, host, content.types, content.description)

    async def rotate(self, endpoint: Endpoint, rotation_id: UUID) -> Endpoint | None:
        return await self._updated(ROTATE, endpoint, rotation_id)

    async def enable(self, endpoint: Endpoint) -> Endpoint | None:
        return await self._updated(ENABLE, endpoint)

    async def disable(self, endpoint: Endpoint) -> Endpoint | None:
        async with self._session.transaction():
            disabled = await self._updated(DISABLE, endpoint)
            await self._session.fetch(FAIL_PENDING, endpoint.account_id, endpoint.id)
            return disabled

    async def remove(self, account_id: AccountId, endpoint_id: EndpointId) -> bool:
        (row,) = await self._session.fetch(REMOVE, account_id, endpoint_id)
        return row["is_removed"]

    async def _updated(self, statement: LiteralString, endpoint: Endpoint, *args: object) -> Endpoint | None:
        rows = await self._session.fetch(statement, endpoint.account_id, endpoint.id, *args)
        return _endpoint(rows[0]) if rows else None


def _endpoint(row: Record) -> Endpoint:
    fields: dict[str, Any] = {name: row[name] for name in Endpoint.__struct_fields__}
    fields["types"] = tuple(row["types"])
    return Endpoint(**fields)
