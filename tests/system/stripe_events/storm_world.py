"""Fake Stripe that derives every object from its id, so that several processes see the same objects."""

import uuid

from tests.support.stripe_snapshots import checkout
from tests.system.stripe_events.stripe_world import World, event_of


def session_id_of(account_id, credits_bought):
    return f"cs_{account_id.hex}_{credits_bought}_{uuid.uuid4().hex}"


def purchase_event(account_id, credits_bought):
    return event_of("checkout.session.completed", session_id_of(account_id, credits_bought))


class DerivedWorld(World):
    async def checkout(self, session_id):
        _, account, credits_bought, key = session_id.split("_")
        return checkout(
            uuid.UUID(account),
            id=session_id,
            customer_id=None,
            credits=int(credits_bought),
            payment_id=f"pi_{key}",
        )
