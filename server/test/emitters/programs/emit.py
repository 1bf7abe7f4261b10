"""Calls the fake providers with one emitter, which exports to OTEL_EXPORTER_OTLP_ENDPOINT. Usage: emit.py EMITTER"""

import os
import sys

from opentelemetry import _logs, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

spans = TracerProvider()
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
if sys.argv[1] != "logfire":  # It has its own.
    trace.set_tracer_provider(spans)
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
if sys.argv[1] != "logfire":
    _logs.set_logger_provider(logs)

weather = {
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def ask(text):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def call_openai():
    from openai import BadRequestError, OpenAI

    client = OpenAI(max_retries=0)
    create = client.chat.completions.create
    create(model="gpt-4o-mini", messages=ask("plain question"))
    for _ in create(
        model="gpt-4o-mini",
        messages=ask("streamed question"),
        stream=True,
        stream_options={"include_usage": True},
    ):
        pass
    try:
        create(model="gpt-4o-mini", messages=ask("fail please"))
    except BadRequestError:
        pass
    create(
        model="gpt-4o-mini",
        messages=ask("weather in Paris?"),
        tools=[{"type": "function", "function": weather}],
    )
    create(model="gpt-4o", messages=ask("cached question"))
    client.embeddings.create(model="text-embedding-3-small", input="embed this")


def call_anthropic():
    from anthropic import Anthropic, BadRequestError

    client = Anthropic(max_retries=0)

    def create(text, **more):
        return client.messages.create(
            model="claude-sonnet-5",
            max_tokens=100,
            system="Be brief.",
            messages=[{"role": "user", "content": text}],
            **more,
        )

    create("plain question")
    for _ in create("streamed question", stream=True):
        pass
    try:
        create("fail please")
    except BadRequestError:
        pass
    tool = {"name": "weather", "description": weather["description"], "input_schema": weather["parameters"]}
    create("weather in Paris?", tools=[tool])
    create("cached question")


def with_openinference_context(work):
    from openinference.instrumentation import using_attributes

    with using_attributes(session_id="session-2", user_id="user-2"):
        work()


def call_pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ModelHTTPError

    Agent.instrument_all()

    def weather_tool(city: str) -> str:
        return f"Sunny in {city}"

    weather_tool.__name__ = "weather"
    for model in ("openai-chat:gpt-4o-mini", "anthropic:claude-sonnet-5"):
        agent = Agent(model, name="helper", system_prompt="Be brief.", tools=[weather_tool])
        agent.run_sync("plain question")
        agent.run_sync("weather in Paris?")
        agent.run_sync("cached question")
        try:
            agent.run_sync("fail please")
        except ModelHTTPError:
            pass
        import asyncio

        async def stream():
            async with agent.run_stream("streamed question") as result:
                async for _ in result.stream_text():
                    pass

        asyncio.run(stream())


def call_langchain():
    from langchain_openai import ChatOpenAI
    from openai import BadRequestError

    model = ChatOpenAI(model="gpt-4o-mini", max_retries=0)
    model.invoke(ask("plain question"))
    for _ in model.stream(ask("streamed question"), stream_usage=True):
        pass
    try:
        model.invoke(ask("fail please"))
    except BadRequestError:
        pass
    model.bind_tools([{"type": "function", "function": weather}]).invoke(ask("weather in Paris?"))
    model.invoke(ask("cached question"))


def instrument(*names):
    for name in names:
        if name == "official-openai":
            from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
        elif name == "official-openai-v2":
            from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
        elif name == "official-anthropic":
            from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor as OpenAIInstrumentor
        elif name == "openinference-openai":
            from openinference.instrumentation.openai import OpenAIInstrumentor
        elif name == "openllmetry-openai":
            from opentelemetry.instrumentation.openai import OpenAIInstrumentor
        elif name == "openinference-anthropic":
            from openinference.instrumentation.anthropic import AnthropicInstrumentor as OpenAIInstrumentor
        elif name == "openllmetry-anthropic":
            from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor as OpenAIInstrumentor
        elif name == "openinference-langchain":
            from openinference.instrumentation.langchain import LangChainInstrumentor as OpenAIInstrumentor
        OpenAIInstrumentor().instrument()


def call_logfire():
    import logfire

    logfire.configure(send_to_logfire=False, console=False)
    logfire.instrument_openai()
    logfire.instrument_anthropic()
    call_openai()
    call_anthropic()
    logfire.force_flush()


emitters = {
    "official-openai": lambda: (instrument("official-openai"), call_openai()),
    "official-anthropic": lambda: (instrument("official-anthropic"), call_anthropic()),
    "official-openai-v2": lambda: (instrument("official-openai-v2"), call_openai()),
    "official-openai-v1.30": lambda: (instrument("official-openai-v2"), call_openai()),
    "official-openai-span-and-event": lambda: (instrument("official-openai"), call_openai()),
    "openinference-openai": lambda: (
        instrument("openinference-openai"),
        with_openinference_context(call_openai),
    ),
    "openinference-anthropic": lambda: (
        instrument("openinference-anthropic"),
        with_openinference_context(call_anthropic),
    ),
    "openllmetry-openai": lambda: (instrument("openllmetry-openai"), call_openai()),
    "openllmetry-anthropic": lambda: (instrument("openllmetry-anthropic"), call_anthropic()),
    "pydantic-ai": call_pydantic_ai,
    "logfire": call_logfire,
    "openinference-langchain": lambda: (instrument("openinference-langchain"), call_langchain()),
    "two-openai": lambda: (instrument("official-openai", "openinference-openai"), call_openai()),
    "three-openai": lambda: (
        instrument("openllmetry-openai", "openinference-openai", "official-openai"),
        call_openai(),
    ),
    "two-anthropic": lambda: (
        instrument("openllmetry-anthropic", "openinference-anthropic"),
        call_anthropic(),
    ),
    "langchain-and-openai": lambda: (
        instrument("openinference-langchain", "openinference-openai"),
        call_langchain(),
    ),
}

emitters[sys.argv[1]]()
spans.shutdown()
logs.shutdown()
