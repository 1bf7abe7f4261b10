"""Blocks and functions that are measured, traces that are recorded, and labels."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from support import Recorded, Server, has
from tracetally import TraceTally, TraceTallyError


def test_a_block(tally: TraceTally, recorded: Recorded) -> None:
    with tally.measure(
        "gpt-4o", input=[{"role": "user", "content": "hi"}], feature=recorded.feature, user="u-1"
    ) as call:
        call.set(output="Hello", prompt_tokens=1000, completion_tokens=100, cached_tokens=800, reasoning_tokens=10)
        call.set(response_model="gpt-4o-2024-08-06", response_id="chatcmpl-1")
    trace = recorded.only()
    has(trace, model="gpt-4o", output="Hello", status="success", user_identifier="u-1", cost_usd=0.0025)
    has(trace, cache_read_tokens=800, reasoning_tokens=10, input='[{"role":"user","content":"hi"}]')


def test_a_block_that_raises(tally: TraceTally, recorded: Recorded) -> None:
    with pytest.raises(TimeoutError), tally.measure("m", feature=recorded.feature) as call:
        call.set(output="half")
        raise TimeoutError("too slow") from ValueError("why")
    has(recorded.only(), status="error", error_type="timeout", error_message="too slow (cause: why)", output="half")


def test_an_error_that_was_not_raised(tally: TraceTally, recorded: Recorded) -> None:
    with tally.measure("m", feature=recorded.feature, input="x") as call:
        call.set(error_message="no answer", model="other", cost_usd=0.5)
    has(recorded.only(), status="error", error_message="no answer", model="other", cost_usd=0.5, cost_source="client")


def test_functions_of_every_kind(tally: TraceTally, recorded: Recorded) -> None:
    measured = tally.measure("m", feature=recorded.feature)

    @measured
    def plain(prompt: str) -> str:
        """Kept."""
        tally.current_call().set(prompt_tokens=3)
        return prompt.upper()

    @measured
    async def later(prompt: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"said": prompt}

    @measured
    def pieces(count: int) -> Iterator[str]:
        for number in range(count):
            yield str(number)

    @measured
    async def async_pieces(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    async def run() -> None:
        assert await later("b") == {"said": "b"}
        assert [number async for number in async_pieces(2)] == [0, 1]

    assert (plain.__doc__, plain("a")) == ("Kept.", "A")
    asyncio.run(run())
    assert "".join(pieces(3)) == "012"
    one, two, three, four = recorded.all()
    has(one, input="a", output="A", prompt_tokens=3, ttft_ms=None)
    has(two, input="b", output='{"said":"b"}')
    has(three, output="[0,1]")
    has(four, output="012")
    assert "ttft_ms" in three
    assert "ttft_ms" in four
    tally.current_call().set(output="outside of a call")


def test_generators_that_are_left_or_fail(tally: TraceTally, recorded: Recorded) -> None:
    closed: list[str] = []

    @tally.measure("m", feature=recorded.feature, input="given")
    def pieces() -> Iterator[str]:
        try:
            yield "a"
            yield "b"
            raise ConnectionError("gone")
        finally:
            closed.append("yes")

    for _ in pieces():
        break
    unread = pieces()
    unread.close()  # type: ignore[attr-defined]
    with pytest.raises(ConnectionError):
        list(pieces())
    left, failed = recorded.all()
    has(left, status="success", output="a", input="given")
    has(failed, status="error", output="ab", error_type="connection")
    assert closed == ["yes", "yes"]


def test_cancellation_is_recorded_and_passed_on(tally: TraceTally, recorded: Recorded) -> None:
    @tally.measure("m", feature=recorded.feature)
    async def work() -> None:
        await asyncio.sleep(60)

    async def run() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    has(recorded.only(), status="error", error_type="aborted")


def test_recorded_and_enqueued_traces(tally: TraceTally, recorded: Recorded) -> None:
    started = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone(timedelta(hours=2)))
    fields: dict[str, Any] = {"feature_name": recorded.feature, "prompt_tokens": 1000, "completion_tokens": 100}
    stored = tally.record(model="gpt-4o", started_at=started, metadata={"tier": "gold"}, output=[1], **fields)
    assert stored is not None
    has(stored, cost_usd=0.0035, cost_source="computed", started_at="2026-01-02T01:04:05.678901Z", output="[1]")
    with tally.labels(user="u-1", run="r-1"):
        tally.enqueue(model="m", cost_usd=Decimal("0.25"), **fields)  # type: ignore[typeddict-item]
    first, second = recorded.all()
    assert first == {**stored}
    has(second, cost_usd=0.25, user_identifier="u-1", run_id="r-1")
    assert asyncio.run(tally.arecord(model="m", cost_usd=0.5, feature_name=recorded.feature)) is not None


def test_an_invalid_trace_is_an_error_of_record(tally: TraceTally, errors: list[Exception]) -> None:
    with pytest.raises(TraceTallyError) as raised:
        tally.record(model="", prompt_tokens=-1)
    assert raised.value.code == "invalid_input"
    assert {error["field"] for error in raised.value.errors} >= {"model"}
    tally.enqueue(model="", feature_name="x")
    tally.flush()
    (error,) = errors
    assert isinstance(error, TraceTallyError)
    assert tally.stats().rejected == 1


def test_labels(tally: TraceTally, recorded: Recorded) -> None:
    def ask(**own: Any) -> None:
        with tally.measure("m", **own):
            pass

    async def tasks() -> None:
        await asyncio.gather(*(task(number) for number in range(3)))

    async def task(number: int) -> None:
        with tally.labels(user=f"task-{number}"):
            await asyncio.sleep(0.01 * (3 - number))
            ask()

    with tally.labels(feature=recorded.feature, user="outer", session="s"):
        with tally.labels(user="inner", run=None):
            ask()
        ask(user="own", session=None)
        asyncio.run(tasks())
        with ThreadPoolExecutor(1) as pool:
            pool.submit(tally.bind(ask)).result()
            pool.submit(ask, feature=recorded.feature).result()
            asyncio.run(tally.bind(tasks)())
    users = [(trace["user_identifier"], trace.get("session_id")) for trace in recorded.all()]
    late_first = [(f"task-{number}", "s") for number in (2, 1, 0)]
    assert users == [("inner", "s"), ("own", "s"), *late_first, ("outer", "s"), (None, None), *late_first]
    with pytest.raises(TypeError, match="Unknown label 'usr'"):
        tally.labels(usr="x")  # type: ignore[call-arg]


def test_labels_of_a_generator_that_another_context_closes(tally: TraceTally) -> None:
    def generator() -> Iterator[int]:
        with tally.labels(user="u"), tally.measure("m"):
            yield 1

    running = generator()
    contextvars.copy_context().run(next, running)
    running.close()  # type: ignore[attr-defined]


def test_masking_and_leaving_out_texts(server: Server, errors: list[Exception], recorded: Recorded) -> None:
    def mask(text: str) -> str:
        if "bomb" in text:
            raise ValueError(text)
        return text.replace("secret", "[x]")

    options: dict[str, Any] = {"api_key": server.key, "base_url": server.url, "on_error": errors.append}
    with TraceTally(mask=mask, **options) as masked, TraceTally(capture_text=False, **options) as silent:
        for client in (masked, silent):
            for text in ("my secret", "bomb secret"):
                with client.measure("m", input=[text], feature=recorded.feature) as call:
                    call.set(output=text, error_message=text)
        masked.record(model="m", input="secret", feature_name=recorded.feature)
    with TraceTally(mask=lambda text: 7, **options) as wrong:  # type: ignore[arg-type, return-value]
        wrong.record(model="m", input="secret", feature_name=recorded.feature)
    traces = server.traces(feature_name=recorded.feature)
    texts = sorted(str((trace["input"], trace["output"], trace["error_message"])) for trace in traces)
    failed = "[mask failed]"
    expected: list[Any] = [
        ('["my [x]"]', "my [x]", "my [x]"),
        (failed, failed, failed),
        (None, None, "my secret"),
        (None, None, "bomb secret"),
        ("[x]", None, None),
        (failed, None, None),
    ]
    assert texts == sorted(str(each) for each in expected)
    assert [getattr(error, "code", None) for error in errors] == ["mask_failed", "mask_failed"]
    assert "secret" not in str(errors)


def test_sampling(server: Server, recorded: Recorded) -> None:
    options: dict[str, Any] = {"api_key": server.key, "base_url": server.url}
    with TraceTally(sample_rate=0, **options) as none, TraceTally(sample_rate=0.5, **options) as half:
        for _ in range(400):
            none.enqueue(model="m", feature_name=recorded.feature)
            half.enqueue(model="m", feature_name=recorded.feature)
    assert none.stats().sent == 0
    assert 100 < half.stats().sent < 300
    assert server.count(feature_name=recorded.feature) == half.stats().sent


def test_the_environment_of_every_trace(server: Server, recorded: Recorded) -> None:
    with TraceTally(api_key=server.key, base_url=server.url, environment="staging") as tally:
        tally.enqueue(model="m", feature_name=recorded.feature)
        tally.enqueue(model="m", feature_name=recorded.feature, environment="own")
    traces = server.traces(feature_name=recorded.feature)
    assert [trace["environment"] for trace in traces] == ["staging", "own"]


def test_without_a_key_nothing_happens(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, recorded: Recorded
) -> None:
    monkeypatch.delenv("TRACETALLY_API_KEY", raising=False)
    tally = TraceTally()
    client = object()
    assert tally.wrap_openai(client) is client
    assert tally.wrap_anthropic(client) is client
    assert tally.wrap_google_genai(client) is client
    with tally.measure("m") as call:
        call.set(output="x")
    assert tally.record(model="m") is None
    tally.enqueue(model="m")
    assert tally.flush()
    tally.close()
    assert [record.message for record in caplog.records] == [
        "TraceTally: AI calls are not recorded because there is no API key. "
        "Set TRACETALLY_API_KEY or the option api_key."
    ]
    TraceTally(enabled=False)
    assert len(caplog.records) == 1


def test_json_of_replies(tally: TraceTally, recorded: Recorded) -> None:
    with tally.measure("m", input="\ud800 lone \x00 zero \U0001f600", feature=recorded.feature):
        pass
    assert json.dumps(recorded.only()["input"]) == json.dumps("\ufffd lone \x00 zero \U0001f600")
