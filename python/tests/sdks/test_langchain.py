"""Model calls of LangChain and LangGraph through the callback handler."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_provider import FakeProvider

from support import Recorded, has
from tracetally import TraceTally

pytest.importorskip("langchain_core")
langchain_openai = pytest.importorskip("langchain_openai")

LOOP = asyncio.new_event_loop()
"""LangChain shares its connections between models, and connections belong to one loop."""
USAGE = {"prompt_tokens": 1200, "completion_tokens": 30, "cache_read_tokens": 1000, "reasoning_tokens": 12}


@pytest.fixture
def model(provider: FakeProvider) -> Any:
    return langchain_openai.ChatOpenAI(
        model="gpt-4o", api_key="none", base_url=f"{provider.url}/v1", max_retries=0, stream_usage=True
    )


@pytest.fixture
def config(tally: TraceTally, recorded: Recorded) -> dict[str, Any]:
    return {"callbacks": [tally.langchain_handler(feature=recorded.feature)]}


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream", "batch"])
def test_each_way_is_one_call(way: str, model: Any, config: Any, tally: TraceTally, recorded: Recorded) -> None:
    async def asynchronously() -> None:
        if way == "ainvoke":
            await model.ainvoke("hi", config)
        else:
            async for _ in model.astream("hi", config):
                pass

    with tally.labels(user="u-1"):
        if way == "invoke":
            assert model.invoke("hi", config).content == "Hello there."
        elif way == "stream":
            assert "".join(chunk.content for chunk in model.stream("hi", config)) == "Hello there."
        elif way == "batch":
            model.batch(["hi"], config)
        else:
            LOOP.run_until_complete(asynchronously())
    trace = recorded.only()
    has(
        trace,
        model="gpt-4o",
        output="Hello there.",
        status="success",
        provider="openai",
        user_identifier="u-1",
        **USAGE,
    )
    assert trace["input"] == '[{"role":"human","content":"hi"}]'
    assert trace["cost_usd"] > 0
    assert ("ttft_ms" in trace) == ("stream" in way)


def test_failures(model: Any, config: Any, recorded: Recorded) -> None:
    with pytest.raises(Exception, match="429"):
        model.invoke("fail with 429", config)
    has(recorded.only(), status="error", error_type="rate_limit")


def test_tool_calls(model: Any, config: Any, recorded: Recorded) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return city

    model.bind_tools([weather]).invoke("weather?", config)
    assert '"weather"' in recorded.only()["output"]


def test_an_interrupt_of_langgraph_is_no_error(model: Any, config: Any, recorded: Recorded) -> None:
    graphs = pytest.importorskip("langgraph.graph")
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import interrupt

    def node(state: dict[str, Any]) -> dict[str, Any]:
        model.invoke("hi", config={"callbacks": config["callbacks"]})
        interrupt("May I?")
        return state

    graph = graphs.StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(graphs.START, "node")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"text": "x"}, {**config, "configurable": {"thread_id": "t-1"}})
    assert [trace["status"] for trace in recorded.all()] == ["success"]
