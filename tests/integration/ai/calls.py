"""Provider requests and endpoint resolvers for tests."""

import uuid
from typing import Annotated, Literal

import msgspec

from infrastructure.ai.providers.base import ModelRequest
from infrastructure.ai.response_format import response_format
from infrastructure.provider_endpoint import ProviderEndpoint
from shared.ids import AccountId
from shared.llm import CostOwner

KEY = "sk-canary-0123456789"
ACCOUNT_ID = AccountId(uuid.UUID("0b5e0f3c-8d1c-4a51-9a54-6d7c2a1e9f10"))


class Verdict(msgspec.Struct):
    score: Annotated[int, msgspec.Meta(ge=0, le=100)]
    reason: Annotated[str, msgspec.Meta(min_length=1)] = "none"
    tone: Literal["warm", "cold"] = "cold"


def request(**changes):
    asked = ModelRequest(
        model="gpt-5-mini",
        cached_prefix=("You judge profiles.", "The business sells looms."),
        user_message="Who is this?",
        response_format=response_format(changes.pop("answer", Verdict)),
        effort=None,
        temperature=None,
        output_tokens_max=900,
        prefix_key="tenant-light",
        completion_key="5f2c",
        owner=CostOwner(account_id=ACCOUNT_ID),
        task="light",
        is_fresh=False,
    )
    return msgspec.structs.replace(asked, **changes)


def at(url, *, key=KEY, is_simulated=False):
    async def where():
        return ProviderEndpoint(url, key, is_simulated)

    return where
