"""Calls of the OpenAI SDK: what is recorded, and that the caller gets what an unwrapped client gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import openai
import pydantic
import pytest
from fake_provider import FakeProvider
from pairs import Pair

from support import Recorded, Server, has
from tracetally import TraceTally

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
USAGE = {"prompt_tokens": 1200, "completion_tokens": 30, "cache_read_tokens": 1000, "reasoning_tokens": 12}
COST = 0.00205


class Sum(pydantic.BaseModel):
    answer: int


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.fixture(params=["plain", "async"])
def pair(request: pytest.FixtureRequest, provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> Pair:
    kind: Any = openai.AsyncOpenAI if request.param == "async" else openai.OpenAI
    plain = kind(api_key="none", base_url=f"{provider.url}/v1", max_retries=0)
    return Pair(plain, tally.wrap_openai(plain, feature=recorded.feature, user="u-1"))


CHATS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "a completion": (
        lambda c: c.chat.completions.create(model="gpt-4o", messages=said("hi")),
        {"output": "Hello there.", "response_model": "gpt-4o-2024-08-06", "ttft_ms": None},
    ),
    "several choices": (
        lambda c: c.chat.completions.create(model="gpt-4o", messages=said("hi"), n=2),
        {"output": '["Hello there.","Hello there."]'},
    ),
    "null choices": (
        lambda c: c.chat.completions.create(model="gpt-4o", messages=said("null choices")),
        {"output": None},
    ),
    "a stream": (
        lambda c: c.chat.completions.create(model="gpt-4o", messages=said("hi"), stream=True),
        {"output": "Hello there.", "response_model": "gpt-4o-2024-08-06"},
    ),
    "a stream with usage": (
        lambda c: c.chat.completions.create(
            model="gpt-4o", messages=said("hi"), stream=True, stream_options={"include_usage": True}
        ),
        {"output": "Hello there."},
    ),
    "a stream of Azure with chunks without choices, without delta and with null": (
        lambda c: c.chat.completions.create(model="gpt-4o", messages=said("azure"), stream=True),
        {"output": "Hello there.", "response_model": "gpt-4o-2024-08-06"},
    ),
    "a raw response": (
        lambda c: c.chat.completions.with_raw_response.create(model="gpt-4o", messages=said("hi")),
        {"output": "Hello there."},
    ),
    "a raw stream": (
        lambda c: c.chat.completions.with_raw_response.create(model="gpt-4o", messages=said("hi"), stream=True),
        {"output": "Hello there."},
    ),
    "a streaming response": (
        lambda c: c.chat.completions.with_streaming_response.create(model="gpt-4o", messages=said("hi")),
        {"output": "Hello there."},
    ),
    "a parsed completion": (
        lambda c: c.chat.completions.parse(model="gpt-4o", messages=said("json"), response_format=Sum),
        {"output": '{"answer":4}'},
    ),
    "a parsed stream": (
        lambda c: c.chat.completions.stream(model="gpt-4o", messages=said("json"), response_format=Sum),
        {"output": '{"answer":4}'},
    ),
    "the stream helper": (
        lambda c: c.chat.completions.stream(model="gpt-4o", messages=said("hi")),
        {"output": "Hello there."},
    ),
    "a response": (
        lambda c: c.responses.create(model="gpt-4o", input="hi", instructions="Be kind."),
        {"output": "Hello there.", "input": '{"instructions":"Be kind.","input":"hi"}'},
    ),
    "a streamed response": (
        lambda c: c.responses.create(model="gpt-4o", input="hi", stream=True),
        {"output": "Hello there.", "input": "hi"},
    ),
    "a parsed response": (
        lambda c: c.responses.parse(model="gpt-4o", input="json", text_format=Sum),
        {"output": '{"answer":4}'},
    ),
    "the stream helper of responses": (
        lambda c: c.responses.stream(model="gpt-4o", input="hi"),
        {"output": "Hello there."},
    ),
}


@pytest.mark.parametrize("name", CHATS)
def test_is_recorded_once_and_unchanged(name: str, pair: Pair, recorded: Recorded) -> None:
    scene, expected = CHATS[name]
    pair.run(scene)
    trace = recorded.only()
    has(trace, model="gpt-4o", status="success", provider="openai", user_identifier="u-1", **USAGE, **expected)
    assert trace["cost_usd"] == COST
    assert trace["cost_source"] == "computed"
    assert ("ttft_ms" in trace) == ("stream" in name and name != "a streaming response")
    assert trace["latency_ms"] >= trace.get("ttft_ms", 0)


def test_tool_calls(pair: Pair, recorded: Recorded) -> None:
    for stream in (False, True):
        pair.run(
            lambda c, s=stream: c.chat.completions.create(
                model="gpt-4o", messages=said("weather?"), tools=[WEATHER], stream=s
            )
        )
    pair.run(lambda c: c.responses.create(model="gpt-4o", input="weather?"))
    whole, streamed, response = (json.loads(trace["output"]) for trace in recorded.all())
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}
    assert whole == streamed == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert response[0]["name"] == "weather"


def test_embeddings_without_vectors(pair: Pair, recorded: Recorded) -> None:
    pair.run(lambda c: c.embeddings.create(model="text-embedding-3-small", input=["one", "two"]))
    has(recorded.only(), input='["one","two"]', output=None, prompt_tokens=8, model="text-embedding-3-small")


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request"), (401, "authentication"), (429, "rate_limit"), (503, "overloaded")]
)
def test_failures(status: int, kind: str, pair: Pair, recorded: Recorded) -> None:
    raised = pair.run(lambda c: c.chat.completions.create(model="gpt-4o", messages=said(f"fail with {status}")))
    assert issubclass(raised[0], openai.APIStatusError)
    trace = recorded.only()
    has(trace, status="error", error_type=kind, model="gpt-4o", output=None, prompt_tokens=None, cost_usd=None)
    assert f"The fake fails with {status}." in trace["error_message"]


def test_a_response_that_failed(pair: Pair, recorded: Recorded) -> None:
    for stream in (False, True):
        pair.run(lambda c, s=stream: c.responses.create(model="gpt-4o", input="break", stream=s))
    for trace in recorded.all():
        has(trace, status="error", error_message="The fake broke.", error_type="server_error", **USAGE)


def test_no_connection(tally: TraceTally, recorded: Recorded) -> None:
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9", max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        tally.wrap_openai(client, feature=recorded.feature).chat.completions.create(model="gpt-4o", messages=said("hi"))
    has(recorded.only(), status="error", error_type="connection")


def test_timeouts(pair: Pair, recorded: Recorded) -> None:
    raised = pair.run(
        lambda c: c.with_options(timeout=0.3).chat.completions.create(model="gpt-4o", messages=said("stall"))
    )
    assert raised[0] is openai.APITimeoutError
    has(recorded.only(), status="error", error_type="timeout")


def test_a_stream_that_breaks_off(pair: Pair, recorded: Recorded) -> None:
    pair.run(lambda c: c.chat.completions.create(model="gpt-4o", messages=said("cut"), stream=True))
    has(recorded.only(), status="error", output="Hello", error_type="connection")


def test_an_answer_that_does_not_fit_the_schema(pair: Pair, recorded: Recorded) -> None:
    raised = pair.run(lambda c: c.chat.completions.parse(model="gpt-4o", messages=said("hi"), response_format=Sum))
    assert raised[0].__name__ == "ValidationError"
    has(recorded.only(), status="error", output="Hello there.", **USAGE)


def test_streams_that_are_left(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    client = tally.wrap_openai(openai.OpenAI(api_key="none", base_url=f"{provider.url}/v1"), feature=recorded.feature)

    def stream() -> Any:
        return client.chat.completions.create(model="gpt-4o", messages=said("hi"), stream=True)

    with stream() as opened:
        [next(opened) for _ in range(3)]
    closed = stream()
    [next(closed) for _ in range(3)]
    closed.close()
    closed.close()
    for position, _ in enumerate(stream()):
        if position == 2:
            break
    import gc

    gc.collect()
    traces = recorded.all()
    assert [(trace["status"], trace["output"]) for trace in traces] == [("success", "Hello")] * 3


def test_cancelled_tasks(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    async def leave(text: str, stream: bool) -> None:
        client = tally.wrap_openai(
            openai.AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1"), feature=recorded.feature
        )

        async def read() -> None:
            result: Any = await client.chat.completions.create(model="gpt-4o", messages=said(text), stream=stream)  # type: ignore[call-overload]
            async for _ in result:
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0.4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave("stall", False))
    asyncio.run(leave("slow", True))
    before, during = recorded.all()
    has(before, status="error", error_type="aborted")
    has(during, status="success", output="Hel")


def test_bytes_of_a_streaming_response(pair: Pair, recorded: Recorded) -> None:
    """A caller that reads server-sent events itself; no option is added to its request."""

    def lines(client: Any) -> Any:
        call = client.chat.completions.with_streaming_response.create(
            model="gpt-4o", messages=said("hi"), stream=True, stream_options={"include_usage": True}
        )
        if isinstance(client, openai.OpenAI):
            with call as response:
                return list(response.iter_lines())

        async def read() -> list[str]:
            async with call as response:
                return [line async for line in response.iter_lines()]

        return read()

    pair.run(lines)
    has(recorded.only(), output="Hello there.", status="success", **USAGE)


def test_options_and_copies_stay_wrapped(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    plain = openai.OpenAI(api_key="none", base_url=f"{provider.url}/v1")
    before = dict(plain.__dict__)
    client = tally.wrap_openai(plain, feature=recorded.feature)
    assert isinstance(client, openai.OpenAI)
    again = tally.wrap_openai(
        client.with_options(max_retries=1).copy(), user="u-2", session="s-1", run="r-1", provider="groq"
    )
    again.chat.completions.create(model="gpt-4o", messages=said("hi"))
    has(recorded.only(), user_identifier="u-2", session_id="s-1", run_id="r-1", provider="groq")
    plain.chat.completions.create(model="gpt-4o", messages=said("hi"))
    assert len(recorded.all()) == 1
    assert {name: value for name, value in plain.__dict__.items() if name in before} == before


def test_providers_by_class_and_host(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    azure = openai.AzureOpenAI(
        api_key="none", azure_endpoint=provider.url, api_version="2024-10-21", azure_deployment="gpt-4o"
    )
    tally.wrap_openai(azure, feature=recorded.feature).chat.completions.create(model="gpt-4o", messages=said("hi"))
    has(recorded.only(), provider="azure.ai.openai", cost_usd=COST)
    from tracetally.provider_names import provider_of

    for url, name in {
        "https://api.groq.com/openai/v1": "groq",
        "https://eu.api.openai.com/v1": "openai",
        "https://x.openai.azure.com/": "azure.ai.openai",
        "http://localhost:8000/v1": "openai",
    }.items():
        assert provider_of(openai.OpenAI(api_key="none", base_url=url), "openai") == name


def test_labels_of_a_block_reach_tasks_and_bound_threads(pair: Pair, tally: TraceTally, recorded: Recorded) -> None:
    with tally.labels(user="u-9", session="s-9"):
        pair.run(lambda c: c.chat.completions.create(model="gpt-4o", messages=said("hi")))
    has(recorded.only(), user_identifier="u-9", session_id="s-9")


def test_retries_of_the_sdk_are_one_call(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9", max_retries=2)
    wrapped = tally.wrap_openai(client, feature=recorded.feature)
    with pytest.raises(openai.APIConnectionError):
        wrapped.chat.completions.create(model="gpt-4o", messages=said("hi"))
    assert len(recorded.all()) == 1


def test_a_mutated_list_of_messages_is_recorded_as_it_was(pair: Pair, recorded: Recorded) -> None:
    messages = said("first")
    pair.run(lambda c: c.chat.completions.create(model="gpt-4o", messages=messages))
    messages.append({"role": "user", "content": "second"})
    assert "second" not in recorded.only()["input"]


def test_sampling_decides_once_for_each_call(server: Server, provider: FakeProvider, recorded: Recorded) -> None:
    with TraceTally(api_key=server.key, base_url=server.url, sample_rate=0.5) as tally:
        client = tally.wrap_openai(
            openai.OpenAI(api_key="none", base_url=f"{provider.url}/v1"), feature=recorded.feature
        )
        for _ in range(100):
            client.embeddings.create(model="m", input="x")
    assert 33 < server.count(feature_name=recorded.feature) < 67
