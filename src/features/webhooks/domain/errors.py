from shared.errors import Conflict, Invalid, NotFound


class EndpointNotFound(NotFound):
    code = "webhook_endpoint_not_found"
    text = "There is no such webhook endpoint, or it is not yours."


class DeliveryNotFound(NotFound):
    code = "webhook_delivery_not_found"
    text = "There is no such delivery, or it is not yours. Deliveries are stored for 30 days."


class TooManyEndpoints(Conflict):
    code = "webhook_endpoints_limit"
    text = "An account can have at most {limit} webhook endpoints. Remove one first."
    public = ("limit",)


class EndpointDisabled(Conflict):
    code = "webhook_endpoint_disabled"
    text = "The webhook endpoint is disabled. Enable it first."


class EndpointUrlInvalid(Invalid):
    code = "webhook_url_invalid"
    text = "url: {reason}"


class DescriptionInvalid(Invalid):
    code = "webhook_description_invalid"
    text = "description: Line breaks, tabs and other control characters are not allowed."
