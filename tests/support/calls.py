BALANCE = "/v1/credits/balance"


async def statuses(client, requests, url=BALANCE, *, method="GET", **options):
    """Status codes of sequential requests."""
    return [(await client.request(method, url, **options)).status_code for _ in range(requests)]
