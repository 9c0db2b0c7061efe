def assert_problem(answer, status, code):
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"] == f"urn:oslira:problem:{code}"
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/problem+json"
