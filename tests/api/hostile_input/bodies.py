JSON = [("Content-Type", "application/json")]


def body_of(operation):
    return operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")


def example_of(operation):
    """The documented example of the request's body; None without a body."""
    media = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return media and media["examples"]["example"]["value"]
