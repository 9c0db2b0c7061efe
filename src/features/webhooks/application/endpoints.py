from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec

from features.webhooks.application.ports import DeliveryStore, DestinationPolicy, EndpointStore
from features.webhooks.domain.delivery import Delivery
from features.webhooks.domain.endpoint import Endpoint, EndpointContent, EndpointId
from features.webhooks.domain.errors import EndpointDisabled, EndpointNotFound, EndpointUrlInvalid
from features.webhooks.domain.signature import SigningSecrets
from shared.caller import Caller, no_account
from shared.ids import AccountId
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Manages an account's webhook endpoints and their secrets."""

    store: EndpointStore
    deliveries: DeliveryStore
    destinations: DestinationPolicy
    secrets: SigningSecrets

    async def create(self, caller: Caller, endpoint_id: EndpointId, content: EndpointContent) -> Endpoint:
        """Idempotent by ``endpoint_id``: returns an existing endpoint unchanged."""
        content, host = self._checked(content)
        return await self.store.add(_account(caller), endpoint_id, content, host, caller.actor)

    async def page(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[Endpoint]:
        found = await self.store.list(caller, after=decode_cursor(cursor), endpoints_max=limit + 1)
        return page_of(found, limit, lambda endpoint: Cursor(endpoint.created_at, endpoint.id))

    async def get(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint:
        return _found(await self.store.get(caller, endpoint_id))

    def secret(self, endpoint: Endpoint) -> str:
        """Returns the secret of the current version."""
        return self.secrets.secret(endpoint.account_id, endpoint.id, endpoint.secret_version)

    async def change(
        self, caller: Caller, endpoint_id: EndpointId, changes: Mapping[str, object]
    ) -> Endpoint:
        """Fields that ``changes`` does not name keep their values."""
        endpoint = await self.get(caller, endpoint_id)
        before = EndpointContent(url=endpoint.url, types=endpoint.types, description=endpoint.description)
        content, host = self._checked(msgspec.structs.replace(before, **changes))
        if content == before:
            return endpoint
        return _found(await self.store.change(endpoint, content, host))

    async def rotate(self, caller: Caller, endpoint_id: EndpointId, rotation_id: UUID) -> Endpoint:
        """The previous secret also signs for 24 hours; older secrets end. Idempotent by ``rotation_id``."""
        return _found(await self.store.rotate(await self.get(caller, endpoint_id), rotation_id))

    async def enable(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint:
        endpoint = await self.get(caller, endpoint_id)
        return endpoint if endpoint.is_active else _found(await self.store.enable(endpoint))

    async def disable(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint:
        endpoint = await self.get(caller, endpoint_id)
        return _found(await self.store.disable(endpoint)) if endpoint.is_active else endpoint

    async def remove(self, caller: Caller, endpoint_id: EndpointId) -> None:
        if not await self.store.remove(_account(caller), endpoint_id):
            raise EndpointNotFound

    async def test(self, caller: Caller, endpoint_id: EndpointId, message_id: UUID) -> Delivery:
        endpoint = await self.get(caller, endpoint_id)
        if not endpoint.is_active:
            raise EndpointDisabled
        return await self.deliveries.test(endpoint, message_id)

    def _checked(self, content: EndpointContent) -> tuple[EndpointContent, str]:
        content = content.checked()
        objection = self.destinations.objection(content.url)
        if objection is not None:
            raise EndpointUrlInvalid(reason=objection)
        return content, self.destinations.host(content.url)


def _found(endpoint: Endpoint | None) -> Endpoint:
    if endpoint is None:
        raise EndpointNotFound
    return endpoint


def _account(caller: Caller) -> AccountId:
    if caller.chosen_account is None:
        raise no_account(caller)
    return caller.chosen_account
