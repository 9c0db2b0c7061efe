"""Default deny: the application does not start if a route has no policy."""

import dataclasses

import pytest
from litestar import WebSocket, get, websocket

from core.api.route_policy import RoutePolicyMissing
from core.app import create_app
from core.wiring.slice import Slice
from features.credits.controllers.credits import CreditsController
from shared.http.route_policy import SIGNED_IN, needs
from tests.support.problems import assert_problem


def planted(marks):
    @get("/v1/planted", opt=marks, operation_id="planted")
    async def handler() -> None:
        """Route of the test."""

    return handler


@pytest.fixture
def plant(application):
    """Creates the application with one additional route."""

    def create(handler):
        resources = application.resources
        planted = Slice(name="planted", controllers=(handler,))
        resources = dataclasses.replace(resources, slices=(*resources.slices, planted))
        return create_app(dataclasses.replace(application, resources=resources))

    return create


@pytest.mark.parametrize(
    "marks",
    [
        {},
        {"access": None},
        {"access": ""},
        {"access": "Public"},
        {"access": ["public"]},
        {"access": "credits:write"},
        {"route_class": "read"},
    ],
    ids=str,
)
def test_route_without_a_known_policy_prevents_the_start(plant, marks):
    with pytest.raises(RoutePolicyMissing, match=r"GET /v1/planted"):
        plant(planted(marks))


@pytest.mark.parametrize("marks", [SIGNED_IN, needs("credits:read")])
def test_route_with_a_policy_is_served(plant, marks):
    assert plant(planted(marks))


def test_controller_without_a_policy_is_reported_with_all_its_routes(application, monkeypatch):
    monkeypatch.setattr(CreditsController, "opt", {})

    with pytest.raises(RoutePolicyMissing) as refusal:
        create_app(application)

    paths = ("/v1/credits/balance", "/v1/credits/transactions", "/v1/credits/transactions.csv")
    assert refusal.value.routes == [f"GET {path} (None)" for path in paths]


def test_route_that_the_pipeline_cannot_guard_is_rejected(plant):
    @websocket("/v1/planted")
    async def handler(socket: WebSocket) -> None:
        del socket

    with pytest.raises(RoutePolicyMissing, match="/v1/planted"):
        plant(handler)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/accounts",
        "/v1/accounts/7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11/members",
        "/v1/invitations/accept",
        "/v1/api-keys",
        "/v1/credits/balance",
        "/v1/me",
    ],
)
async def test_allowed_methods_are_shown_to_signed_in_callers_only(client, bearer, path):
    assert_problem(await client.options(path), 401, "token_missing")
    answer = await client.options(path, headers=bearer())
    assert (answer.status_code, "OPTIONS" in answer.headers["allow"]) == (204, True)
