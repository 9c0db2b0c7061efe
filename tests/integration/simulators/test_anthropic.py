"""Simulated Anthropic API, called by Anthropic's own client."""

import json

import anthropic
import pytest
from anthropic.types import Message

pytestmark = pytest.mark.usefixtures("simulators")

STABLE = "We sell strength training programmes to people over forty. " * 100
MARK = {"type": "ephemeral"}
SCORE = {"type": "integer", "minimum": 0, "maximum": 100}


@pytest.fixture
def ask(anthropic_client):
    async def ask(question="followers: 12,345", *, marks=1, **options):
        blocks = [
            {"type": "text", "text": f"{number} {STABLE}", "cache_control": MARK} for number in range(marks)
        ]
        return await anthropic_client.messages.create(
            **{
                "model": "claude-haiku-4-5",
                "max_tokens": 1_000,
                "system": blocks or STABLE,
                "messages": [{"role": "user", "content": question}],
                **options,
            }
        )

    return ask


async def test_a_message_has_every_field_that_the_clients_types_require(ask):
    message = await ask()

    assert Message.model_validate(message.to_dict()) == message
    assert (message.stop_reason, message.model, message.role) == ("end_turn", "claude-haiku-4-5", "assistant")


async def test_structured_output_by_format(ask, closed):
    shape = {"type": "json_schema", "schema": closed(followers_count={"type": "integer"}, fit=SCORE)}

    value = json.loads((await ask(output_config={"format": shape})).content[0].text)

    assert value["followers_count"] == 12345
    assert 0 <= value["fit"] <= 100


async def test_structured_output_by_a_forced_tool(ask, closed):
    tool = {"name": "report", "description": "d", "input_schema": closed(followers_count={"type": "integer"})}

    message = await ask(tools=[tool], tool_choice={"type": "tool", "name": "report"})

    (block,) = message.content
    assert (message.stop_reason, block.type, block.name) == ("tool_use", "tool_use", "report")
    assert block.input == {"followers_count": 12345}


async def test_marked_prefix_is_written_first_and_read_afterwards(ask):
    first, second = [(await ask(question)).usage for question in ("one", "another one")]

    assert first.cache_creation_input_tokens == second.cache_read_input_tokens > 1_024
    assert first.cache_read_input_tokens == second.cache_creation_input_tokens == 0
    assert (first.input_tokens, second.input_tokens) == (1, 3)
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens


async def test_only_the_blocks_after_a_cached_prefix_are_written(ask):
    first, second = [(await ask(marks=marks)).usage for marks in (1, 2)]

    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens > 1_024


async def test_nothing_is_cached_without_a_mark_or_below_the_minimum_length(ask):
    short = [{"type": "text", "text": "Be brief.", "cache_control": MARK}]

    used = [(await ask(**options)).usage for options in ({"marks": 0}, {"marks": 0}, {"system": short})]

    assert [(one.cache_creation_input_tokens, one.cache_read_input_tokens) for one in used] == [(0, 0)] * 3


async def test_too_long_completion_is_cut_and_reports_it(ask):
    message = await ask(max_tokens=3)

    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens <= 3


@pytest.mark.parametrize(
    ("options", "status", "kind"),
    [
        ({"model": "claude-9"}, 404, "not_found_error"),
        ({"extra_body": {"temperature": 0.1}}, 400, "invalid_request_error"),
        ({"extra_body": {"top_k": 1}}, 400, "invalid_request_error"),
        ({"messages": []}, 400, "invalid_request_error"),
        ({"marks": 5}, 400, "invalid_request_error"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, 400, "invalid_request_error"),
    ],
    ids=str,
)
async def test_invalid_request_is_rejected_in_anthropics_format(ask, options, status, kind):
    with pytest.raises(anthropic.APIStatusError) as refusal:
        await ask(**options)

    body = refusal.value.body
    assert (refusal.value.status_code, body["type"], body["error"]["type"]) == (status, "error", kind)
    assert body["request_id"].startswith("req_")


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"x-api-key": "key"}, 400), ({"anthropic-version": "2023-06-01"}, 401)],
)
async def test_key_and_version_are_required(simulators, headers, status):
    answer = await simulators.http.post("/anthropic/v1/messages", json={}, headers=headers)

    assert (answer.status_code, answer.json()["type"]) == (status, "error")
