from shared.errors import Conflict, Invalid, NotFound


class EndpointNotFound(NotFound):
    code = "webhook_endpoint_not_found"

    def __str__(self) -> str:
        return "There is no such webhook endpoint, or it is not yours."


class DeliveryNotFound(NotFound):
    code = "webhook_delivery_not_found"

    def __str__(self) -> str:
        return "There is no such delivery, or it is not yours. Deliveries are kept for 30 days."


class TooManyEndpoints(Conflict):
    code = "webhook_endpoints_limit"

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"An account has {self.limit} webhook endpoints at the most. Remove one first."

    @property
    def facts(self) -> dict[str, int | str]:
        return {"limit": self.limit}


class EndpointDisabled(Conflict):
    code = "webhook_endpoint_disabled"

    def __str__(self) -> str:
        return "The webhook endpoint is disabled, and nothing is sent to it. Enable it first."


class EndpointUrlInvalid(Invalid):
    code = "webhook_url_invalid"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"url: {self.reason}"


class DescriptionInvalid(Invalid):
    code = "webhook_description_invalid"

    def __str__(self) -> str:
        return "description: Leave out line breaks, tabs and other control characters."
