from shared.errors import UpstreamFailed


class PriceUnknown(UpstreamFailed):
    """Somebody pays Stripe for what we have not published: an old price, or one made by hand."""

    code = "price_unknown"

    def __init__(self, price_id: str) -> None:
        super().__init__(price_id)
        self.price_id = price_id

    def __str__(self) -> str:
        return f"No plan is sold at Stripe's price {self.price_id}."


class ShapeUnknown(UpstreamFailed):
    """Stripe's answer lacks what no rule of ours can do without, in every form that we know."""

    code = "stripe_shape_unknown"

    def __init__(self, kind: str, field: str) -> None:
        super().__init__(kind, field)
        self.kind, self.field = kind, field

    def __str__(self) -> str:
        return f"Stripe's {self.kind} came without {self.field}."


class CheckoutNotOurs(UpstreamFailed):
    """A checkout that does not say for which account it was opened."""

    code = "checkout_not_ours"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"Stripe's checkout {self.session_id} belongs to no account of ours."
