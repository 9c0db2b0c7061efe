JSON = [("Content-Type", "application/json")]


def body_of(operation):
    return operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
