"""Calls of the Google Gen AI SDK: what is recorded, and that the caller gets what an unwrapped client gives."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from typing import Any

import pytest
from fake_provider import FakeProvider
from google import genai
from google.genai import errors as google_errors
from google.genai import types
from pairs import Pair

from support import Recorded, has
from tracetally import TraceTally

MODEL = "gemini-2.5-flash"
USAGE = {"prompt_tokens": 1200, "completion_tokens": 30, "cache_read_tokens": 1000, "reasoning_tokens": 12}


def new_client(provider: FakeProvider) -> genai.Client:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=provider.url))


@pytest.fixture(params=["plain", "async"])
def pair(request: pytest.FixtureRequest, provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> Pair:
    plain = new_client(provider)
    wrapped = tally.wrap_google_genai(plain, feature=recorded.feature, user="u-1")
    return Pair(plain.aio, wrapped.aio) if request.param == "async" else Pair(plain, wrapped)


SCENES: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "content": (lambda c: c.models.generate_content(model=MODEL, contents="hi"), {"output": "Hello there."}),
    "a stream": (lambda c: c.models.generate_content_stream(model=MODEL, contents="hi"), {"output": "Hello there."}),
    "a chat": (lambda c: c.chats.create(model=MODEL).send_message("hi"), {"output": "Hello there."}),
    "JSON": (
        lambda c: c.models.generate_content(
            model=MODEL, contents="json", config={"response_mime_type": "application/json"}
        ),
        {"output": '{"answer":4}'},
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_is_recorded_once_and_unchanged(name: str, pair: Pair, recorded: Recorded) -> None:
    scene, expected = SCENES[name]
    pair.run(scene)
    trace = recorded.only()
    has(trace, model=MODEL, status="success", provider="gcp.gemini", user_identifier="u-1", **USAGE, **expected)
    assert trace["response_model"] == f"{MODEL}-001"
    assert trace["cost_usd"] > 0
    assert ("ttft_ms" in trace) == ("stream" in name)


def test_functions_that_the_sdk_calls_are_two_calls(pair: Pair, recorded: Recorded) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Rain in {city}."

    config = types.GenerateContentConfig(tools=[weather], system_instruction="Be kind.")
    pair.run(lambda c: c.models.generate_content(model=MODEL, contents="weather?", config=config))
    first, second = recorded.all()
    assert json.loads(first["output"]) == [{"functionCall": {"name": "weather", "args": {"city": "Paris"}}}]
    assert "Rain in Paris." in second["input"]
    assert "Be kind." in second["input"]
    assert second["output"] == "Hello there."


@pytest.mark.parametrize(("status", "kind"), [(400, "invalid_request"), (429, "rate_limit"), (503, "overloaded")])
def test_failures(status: int, kind: str, pair: Pair, recorded: Recorded) -> None:
    for method in ("generate_content", "generate_content_stream"):
        raised = pair.run(lambda c, m=method: getattr(c.models, m)(model=MODEL, contents=f"fail with {status}"))
        assert issubclass(raised[0], google_errors.APIError)
    for trace in recorded.all():
        has(trace, status="error", error_type=kind, model=MODEL, output=None, cost_usd=None)


def test_a_blocked_prompt(pair: Pair, recorded: Recorded) -> None:
    pair.run(lambda c: c.models.generate_content(model=MODEL, contents="blocked"))
    has(recorded.only(), status="error", error_message="The prompt was blocked (SAFETY).", prompt_tokens=7)


def test_embeddings(pair: Pair, recorded: Recorded) -> None:
    pair.run(lambda c: c.models.embed_content(model="gemini-embedding-001", contents="one"))
    has(recorded.only(), model="gemini-embedding-001", output=None, status="success")


def test_a_stream_that_is_left(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    client = tally.wrap_google_genai(new_client(provider), feature=recorded.feature)
    for _ in client.models.generate_content_stream(model=MODEL, contents="hi"):
        break
    gc.collect()
    has(recorded.only(), status="success", output="Hel")


def test_a_cancelled_task(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> None:
    async def leave() -> None:
        client = tally.wrap_google_genai(new_client(provider), feature=recorded.feature)
        task = asyncio.create_task(client.aio.models.generate_content(model=MODEL, contents="stall"))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    has(recorded.only(), status="error", error_type="aborted")


def test_a_forgotten_copy_does_not_close_the_connections(
    provider: FakeProvider, tally: TraceTally, recorded: Recorded
) -> None:
    plain = new_client(provider)
    for user in ("u-1", "u-2"):
        client = tally.wrap_google_genai(plain, feature=recorded.feature, user=user)
        assert isinstance(client, genai.Client)
        client.models.generate_content(model=MODEL, contents="hi")
        del client
        gc.collect()
    again = tally.wrap_google_genai(tally.wrap_google_genai(plain, feature=recorded.feature), user="u-3")
    again.models.generate_content(model=MODEL, contents="hi")
    plain.models.generate_content(model=MODEL, contents="hi")
    assert [trace["user_identifier"] for trace in recorded.all()] == ["u-1", "u-2", "u-3"]
