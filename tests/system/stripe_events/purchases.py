"""Purchase of a subscription: the states of Stripe's objects and the four events it sends."""

import uuid

import msgspec

from tests.support.stripe_snapshots import changed, checkout, invoice, subscription
from tests.system.stripe_events.stripe_world import World, event_of

# In the order in which Stripe creates them.
TYPES = (
    "customer.subscription.created",
    "invoice.paid",
    "customer.subscription.updated",
    "checkout.session.completed",
)
STATE = """
select a.plan, c.credits_available, s.plan, s.status, s.period_start, s.period_end, s.ended_at,
    (select array_agg((e.kind, split_part(e.reference, ':', 1), e.credits_delta)::text order by e.position)
     from credit_entries as e where e.account_id = a.id),
    (select array_agg((p.period_start, p.plan, p.credits_granted)::text)
     from subscription_periods as p where p.account_id = a.id),
    (select array_agg((i.status, i.paid_cents, i.period_start)::text)
     from invoices as i where i.account_id = a.id),
    (select array_agg((p.credits, p.paid_cents, split_part(p.grant_reference, ':', 1))::text)
     from payments as p where p.account_id = a.id),
    (select array_agg(o.status) from checkouts as o where o.account_id = a.id)
from accounts as a
join credit_accounts as c on c.account_id = a.id
left join subscriptions as s on s.account_id = a.id and s.clock = 'stripe'
where a.id = $1
"""


class Purchase(msgspec.Struct):
    """``moments``: objects at Stripe from the time of each event on."""

    events: list[bytes]
    moments: list[list[object]]
    checkout_id: uuid.UUID

    def reach(self, world: World, number: int):
        """Set Stripe to the state at the given event."""
        for moment in self.moments[: number + 1]:
            world.have(*moment)


def purchase_of(account_id, customer_id, price_id):
    checkout_id = uuid.uuid4()
    sold = subscription(price_id, customer_id=customer_id, status="incomplete", is_paid=False)
    paid = invoice(
        customer_id=customer_id,
        subscription_id=sold.id,
        status="paid",
        paid_cents=2900,
        billing_reason="subscription_create",
        price_id=price_id,
        period_start=sold.period_start,
        period_end=sold.period_end,
        payment_id=f"pi_{uuid.uuid4().hex}",
    )
    session = checkout(
        account_id,
        customer_id=customer_id,
        mode="subscription",
        status="open",
        is_paid=False,
        checkout_id=checkout_id,
        credits=0,
        paid_cents=2900,
        payment_id=None,
        subscription_id=sold.id,
    )
    active = changed(sold, status="active", is_paid=True)
    subjects = (sold.id, paid.id, sold.id, session.id)
    return Purchase(
        events=[event_of(event_type, subject) for event_type, subject in zip(TYPES, subjects, strict=True)],
        moments=[
            [sold, session, changed(paid, status="open", paid_cents=0)],
            [paid],
            [active],
            [changed(session, status="complete", is_paid=True)],
        ],
        checkout_id=checkout_id,
    )
