"""Calls of LiteLLM through the logger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from fake_provider import FakeProvider

from support import Recorded, eventually, has
from tracetally import TraceTally

litellm = pytest.importorskip("litellm")

USAGE = {"prompt_tokens": 1200, "completion_tokens": 30, "cache_read_tokens": 1000, "reasoning_tokens": 12}


@pytest.fixture
def ask(provider: FakeProvider, tally: TraceTally, recorded: Recorded) -> Iterator[dict[str, Any]]:
    litellm.suppress_debug_info = True
    litellm.callbacks = [tally.litellm_logger(feature=recorded.feature)]
    yield {"api_key": "none", "api_base": f"{provider.url}/v1", "model": "openai/gpt-4o", "max_retries": 0}
    litellm.callbacks = []
    for name in ("success_callback", "failure_callback", "_async_success_callback", "_async_failure_callback"):
        getattr(litellm, name).clear()


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def waited_for(recorded: Recorded, count: int) -> list[dict[str, Any]]:
    """LiteLLM calls its loggers some time after the call."""
    eventually(f"{count} traces", lambda: len(recorded.all()) >= count)
    import time

    time.sleep(0.3)
    traces = recorded.all()
    assert len(traces) == count
    return traces


@pytest.mark.parametrize("stream", [False, True])
def test_plain_calls(stream: bool, ask: dict[str, Any], tally: TraceTally, recorded: Recorded) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    with tally.labels(user="u-1", session="s-1"):
        result = litellm.completion(messages=said("hi"), **ask, **options)
        if stream:
            for _ in result:
                pass
    (trace,) = waited_for(recorded, 1)
    has(trace, model="gpt-4o", provider="openai", output="Hello there.", status="success", **USAGE)
    has(trace, user_identifier="u-1", session_id="s-1")
    assert trace["cost_usd"] > 0
    assert ("ttft_ms" in trace) == stream


@pytest.mark.parametrize("stream", [False, True])
def test_async_calls(stream: bool, ask: dict[str, Any], recorded: Recorded) -> None:
    async def run() -> None:
        options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        result = await litellm.acompletion(messages=said("hi"), **ask, **options)
        if stream:
            async for _ in result:
                pass
        await asyncio.sleep(0.5)

    asyncio.run(run())
    (trace,) = waited_for(recorded, 1)
    has(trace, model="gpt-4o", output="Hello there.", status="success", **USAGE)


@pytest.mark.parametrize("is_async", [False, True])
def test_failures(is_async: bool, ask: dict[str, Any], recorded: Recorded) -> None:
    messages = said("fail with 429")

    async def run() -> None:
        with pytest.raises(litellm.RateLimitError):
            await litellm.acompletion(messages=messages, **ask)
        await asyncio.sleep(0.5)

    if is_async:
        asyncio.run(run())
    else:
        with pytest.raises(litellm.RateLimitError):
            litellm.completion(messages=messages, **ask)
    (trace,) = waited_for(recorded, 1)
    has(trace, status="error", error_type="rate_limit", output=None)


def test_tool_calls(ask: dict[str, Any], recorded: Recorded) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
    litellm.completion(messages=said("weather?"), tools=tools, **ask)
    (trace,) = waited_for(recorded, 1)
    assert '"weather"' in trace["output"]
