"""A shop's steps with Stripe, for tests: each by Stripe's own client or by a button of a page."""

DAY_S = 86_400


class Shop:
    def __init__(self, simulators, client):
        self.simulators = simulators
        self.client = client

    async def opened(self):
        self.growth = await self._price("Growth", 2_900, recurring={"interval": "month"})
        self.pro = await self._price("Pro", 9_900, recurring={"interval": "month"})
        self.pack = await self._price("100 credits", 1_500)
        self.customer = await self.client.customers.create_async({"email": "ada@example.com", "name": "Ada"})
        return self

    async def _price(self, name, cents, **options):
        params = {"product_data": {"name": name}, "unit_amount": cents, "currency": "usd", **options}
        return (await self.client.prices.create_async(params)).id

    async def checkout(self, price, **options):
        mode = "payment" if price == self.pack else "subscription"
        params = {
            "mode": mode,
            "customer": self.customer.id,
            "line_items": [{"price": price, "quantity": 1}],
            "success_url": "http://127.0.0.1:3000/ok?id={CHECKOUT_SESSION_ID}",
            **options,
        }
        return await self.client.checkout.sessions.create_async(params)

    async def press(self, url, button):
        return (await self.simulators.http.post(url, data={"answer": button})).text

    async def bought(self, price, **options):
        """Returns the paid session."""
        session = await self.checkout(price, **options)
        await self.press(session.url, "pay")
        return await self.client.checkout.sessions.retrieve_async(session.id)

    async def subscribed(self, price=None, **options):
        session = await self.bought(price or self.growth, **options)
        return await self.subscription(session.subscription)

    async def subscription(self, subscription_id, *expand):
        return await self.client.subscriptions.retrieve_async(subscription_id, {"expand": list(expand)})

    async def changed(self, subscription, price, **options):
        item = subscription["items"].data[0].id
        params = {
            "items": [{"id": item, "price": price}],
            "proration_behavior": "always_invoice",
            "payment_behavior": "error_if_incomplete",
            **options,
        }
        return await self.client.subscriptions.update_async(subscription.id, params)

    async def control(self, path, **content):
        answer = await self.simulators.http.post(f"/_stripe/{path}", json=content)
        return answer.raise_for_status().json() if answer.content else None

    async def advance(self, *, days=0, hours=0):
        return await self.control("advance", seconds=days * DAY_S + hours * 3_600)

    async def advance_to(self, moment):
        now = (await self.control("advance", seconds=0))["now"]
        return await self.control("advance", seconds=moment - now)

    async def event_types(self):
        """Returns the types of events, oldest first."""
        events = (await self.client.events.list_async({"limit": 100})).data
        return [event.type for event in reversed(events)]

    async def deliveries(self):
        return (await self.simulators.http.get("/_stripe/deliveries")).raise_for_status().json()
