"""Calls of the Anthropic SDK: what is recorded, and that the caller gets what an unwrapped client gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from fake_provider import FakeProvider
from pairs import Pair

from support import Recorded, has
from tracetally import TraceTally

MODEL = "claude-sonnet-4-5"
USAGE = {
    "prompt_tokens": 1500,
    "completion_tokens": 30,
    "cache_read_tokens": 1000,
    "cache_write_tokens": 300,
    "reasoning_tokens": 12,
}


def asking(text: str) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": text}]}


@pytest.fixture(params=["plain", "async"])
def pair(request: pytest.FixtureRequest, provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> Pair:
    kind: Any = anthropic.AsyncAnthropic if request.param == "async" else anthropic.Anthropic
    plain = kind(api_key="none", base_url=provider.url, max_retries=0)
    return Pair(plain, tally.wrap_anthropic(plain, feature=recorded.feature, user="u-1"))


SCENES: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "a message": (lambda c: c.messages.create(**asking("hi")), {"output": "Hello there.", "ttft_ms": None}),
    "a message with a system prompt": (
        lambda c: c.messages.create(system="Be kind.", **asking("hi")),
        {"input": '{"system":"Be kind.","messages":[{"role":"user","content":"hi"}]}'},
    ),
    "a stream": (lambda c: c.messages.create(stream=True, **asking("hi")), {"output": "Hello there."}),
    "the stream helper": (lambda c: c.messages.stream(**asking("hi")), {"output": "Hello there."}),
    "a beta message": (lambda c: c.beta.messages.create(**asking("hi")), {"output": "Hello there."}),
    "a stream of a beta message": (lambda c: c.beta.messages.stream(**asking("hi")), {"output": "Hello there."}),
    "a raw response": (lambda c: c.messages.with_raw_response.create(**asking("hi")), {"output": "Hello there."}),
    "a raw stream": (
        lambda c: c.messages.with_raw_response.create(stream=True, **asking("hi")),
        {"output": "Hello there."},
    ),
    "a streaming response": (
        lambda c: c.messages.with_streaming_response.create(**asking("hi")),
        {"output": "Hello there."},
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_is_recorded_once_and_unchanged(name: str, pair: Pair, recorded: Recorded) -> None:
    scene, expected = SCENES[name]
    pair.run(scene)
    trace = recorded.only()
    has(trace, model=MODEL, status="success", provider="anthropic", user_identifier="u-1", **USAGE, **expected)
    assert trace["cost_usd"] > 0
    assert trace["cost_source"] == "computed"
    assert ("ttft_ms" in trace) == ("stream" in name and name != "a streaming response")


def test_tool_calls(pair: Pair, recorded: Recorded) -> None:
    tools: Any = [{"name": "weather", "input_schema": {"type": "object"}}]
    pair.run(lambda c: c.messages.create(tools=tools, **asking("weather?")))
    pair.run(lambda c: c.messages.create(tools=tools, stream=True, **asking("weather?")))
    pair.run(lambda c: c.messages.stream(tools=tools, **asking("weather?")))
    for trace in recorded.all():
        text, tool = json.loads(trace["output"])
        assert text["text"] == "I will look."
        assert (tool["name"], tool["input"]) == ("weather", {"city": "Paris"})


@pytest.mark.parametrize("is_async", [False, True])
def test_the_tool_runner_records_each_call(
    is_async: bool, provider: FakeProvider, tally: TraceTally, recorded: Recorded
) -> None:
    import asyncio

    if not is_async:

        @anthropic.beta_tool
        def weather(city: str) -> str:
            """The weather in a city."""
            return f"Rain in {city}."

        client = anthropic.Anthropic(api_key="none", base_url=provider.url)
        runner = tally.wrap_anthropic(client, feature=recorded.feature).beta.messages.tool_runner(
            tools=[weather], **asking("weather?")
        )
        assert [message.stop_reason for message in runner] == ["tool_use", "end_turn"]
    else:

        @anthropic.beta_async_tool
        async def weather_later(city: str) -> str:
            """The weather in a city."""
            return f"Rain in {city}."

        weather_later.name = "weather"

        async def run() -> list[Any]:
            client = anthropic.AsyncAnthropic(api_key="none", base_url=provider.url)
            runner = tally.wrap_anthropic(client, feature=recorded.feature).beta.messages.tool_runner(
                tools=[weather_later], **asking("weather?")
            )
            return [message.stop_reason async for message in runner]

        assert asyncio.run(run()) == ["tool_use", "end_turn"]
    assert [trace["prompt_tokens"] for trace in recorded.all()] == [1500, 1500]


@pytest.mark.parametrize(("status", "kind"), [(400, "invalid_request"), (429, "rate_limit"), (529, "overloaded")])
def test_failures(status: int, kind: str, pair: Pair, recorded: Recorded) -> None:
    raised = pair.run(lambda c: c.messages.create(**asking(f"fail with {status}")))
    assert issubclass(raised[0], anthropic.APIStatusError)
    has(recorded.only(), status="error", error_type=kind, model=MODEL, output=None, cost_usd=None)


def test_a_stream_that_breaks_off(pair: Pair, recorded: Recorded) -> None:
    pair.run(lambda c: c.messages.create(stream=True, **asking("cut")))
    has(recorded.only(), status="error", output="Hel", error_type="connection", prompt_tokens=1500)


def test_a_stream_that_is_left(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    client = tally.wrap_anthropic(anthropic.Anthropic(api_key="none", base_url=provider.url), feature=recorded.feature)
    with client.messages.stream(**asking("hi")) as stream:
        for text in stream.text_stream:
            assert text == "Hel"
            break
    has(recorded.only(), status="success", output="Hel", completion_tokens=1)


def test_clients_of_clouds(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    bedrock: Any = anthropic.AnthropicBedrock(
        aws_access_key="a", aws_secret_key="s", aws_region="us-east-1", base_url=provider.url
    )
    vertex: Any = anthropic.AnthropicVertex(access_token="t", project_id="p", region="us-east5", base_url=provider.url)
    for client, model in (
        (bedrock, "us.anthropic.claude-sonnet-4-20250514-v1:0"),
        (vertex, "claude-sonnet-4@20250514"),
    ):
        wrapped = tally.wrap_anthropic(client, feature=recorded.feature)
        assert type(wrapped) is type(client)
        wrapped.messages.create(**{**asking("hi"), "model": model})
        wrapped.beta.messages.create(**{**asking("hi"), "model": model})
    traces = recorded.all()
    assert [trace["provider"] for trace in traces] == ["aws.bedrock"] * 2 + ["gcp.vertex_ai"] * 2
    assert all(trace["output"] == "Hello there." and trace["cost_usd"] > 0 for trace in traces)


def test_counting_tokens_is_no_call(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    client = tally.wrap_anthropic(anthropic.Anthropic(api_key="none", base_url=provider.url), feature=recorded.feature)
    client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "hi"}])
    assert recorded.all() == []
