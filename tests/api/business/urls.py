PROFILES = "/v1/business-profiles"


async def listed(client, headers, **query):
    answer = await client.get(PROFILES, headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]
