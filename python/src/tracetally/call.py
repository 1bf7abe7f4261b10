"""One call to a model, from its beginning to the trace that records it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from .error_type import error_type
from .labels import current_labels
from .text import as_text, clean_count, clean_name, clean_parts, clean_usd, error_text

Trace = dict[str, Any]
"""A trace as `POST /traces` accepts it."""

_YEAR_2000 = 946_684_800.0
_FIXED_SIZE = 500


class Usage(NamedTuple):
    """Token counts of a call. Input tokens include cached ones; output tokens include reasoning tokens."""

    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_tokens: Any = None
    cache_write_tokens: Any = None
    reasoning_tokens: Any = None


class Answer(NamedTuple):
    """What the provider returned, as far as it is known."""

    output: Any = None
    usage: Usage | None = None
    response_model: Any = None
    """The exact model that answered, such as `gpt-4o-2024-08-06` for `gpt-4o`."""
    response_id: Any = None
    """The provider's id of the answer. Not sent yet: the server has no field for it."""
    model: Any = None
    """Replaces the requested model."""
    cost_usd: Any = None
    error: object = None
    """Set if the provider reports a failure although the request succeeded."""


class Recorder(Protocol):
    """What the wrappers need from the client. Its methods never raise."""

    def wants_call(self) -> bool: ...

    def process(self) -> int: ...

    def enqueue(self, payload: Trace | Callable[[], Trace], size: int) -> None: ...

    def report(self, error: Exception) -> None: ...


class Asked(NamedTuple):
    """What is known about a call when it starts. The input is text by then, because callers may change their lists later."""

    model: Any
    input: str | None
    labels: Mapping[str, Any]
    provider: str | None
    """The provider if no label names one."""


class Call:
    """A call in progress. The first `end` or `fail` records it. No method raises."""

    __slots__ = ("_asked", "_first_output", "_open", "_process", "_recorder", "_started", "_started_at")

    def __init__(self, recorder: Recorder, asked: Asked) -> None:
        self._recorder = recorder
        self._asked = asked
        self._process = recorder.process()
        # Removing its only item is atomic: two threads cannot both settle the call.
        self._open = [True]
        self._first_output: float | None = None
        self._started_at = time.time()
        self._started = time.perf_counter()

    def output_began(self) -> None:
        """The first part of a streamed answer has arrived. Only the first call counts."""
        if self._first_output is None:
            self._first_output = time.perf_counter() - self._started

    def end(self, answer: Answer) -> None:
        self._settle(answer, None)

    def end_later(self, read: Callable[[], Answer], size: int) -> None:
        """Ends the call now; the answer is read on the client's thread."""
        self._settle(None, read, size)

    def fail(self, error: object, answer: Answer | None = None) -> None:
        reason = error if error is not None else "unknown error"
        self._settle((answer or Answer())._replace(error=reason), None)

    def _settle(self, answer: Answer | None, read: Callable[[], Answer] | None, size: int = 0) -> None:
        try:
            self._open.pop()
        except IndexError:
            return
        # A forked child must not report calls that its parent has begun and reports itself.
        if self._process != self._recorder.process():
            return
        try:
            timing = _Timing(self._started_at, time.perf_counter() - self._started, self._first_output)
            asked = self._asked
            prompt_size = len(asked.input or "")
            if read is not None:
                self._recorder.enqueue(lambda: _trace_of(asked, _answer_of(read), timing), size + prompt_size)
            elif answer is None or answer.error is not None:
                # Now, because errors hold on to the frames in which they were raised.
                trace = _trace_of(asked, answer or Answer(), timing)
                self._recorder.enqueue(trace, size_of(trace))
            else:
                # The rest is done by the client's thread, but the text is made now: the caller may change the answer.
                said = answer._replace(output=as_text(answer.output))
                text_size = len(said.output or "")
                self._recorder.enqueue(lambda: _trace_of(asked, said, timing), _FIXED_SIZE + prompt_size + text_size)
        except Exception as error:
            self._recorder.report(error)


class _Timing(NamedTuple):
    started_at: float
    seconds: float
    first_output: float | None


def _answer_of(read: Callable[[], Answer]) -> Answer:
    """An answer that cannot be read is recorded without its content."""
    try:
        return read()
    except Exception:
        return Answer()


def size_of(trace: Trace) -> int:
    """About as many bytes as the trace takes in memory."""
    return _FIXED_SIZE + sum(len(value) for value in trace.values() if isinstance(value, str))


def time_text(seconds: float) -> str | None:
    """None if the clock was never set: the server rejects times before 2000, and the trace would be lost."""
    if seconds < _YEAR_2000:
        return None
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micros:06d}Z"


def _trace_of(asked: Asked, answer: Answer, timing: _Timing) -> Trace:
    usage = answer.usage or Usage()
    labels = asked.labels
    error = answer.error
    # The requested name comes first, so that successes and failures of one model are counted under one name.
    response_model = clean_name(answer.response_model)
    model = clean_name(answer.model) or clean_name(asked.model) or response_model or "unknown"
    prompt_tokens = clean_count(usage.input_tokens)
    completion_tokens = clean_count(usage.output_tokens)
    trace: Trace = {
        "model": model,
        "input": asked.input,
        "output": as_text(answer.output),
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "latency_ms": _whole_ms(timing.seconds),
        "cost_usd": clean_usd(answer.cost_usd),
        "status": "success" if error is None else "error",
        "error_message": None if error is None else error_text(error),
        "feature_name": clean_name(labels.get("feature")),
        "user_identifier": clean_name(labels.get("user")),
        "response_model": None if response_model == model else response_model,
        "started_at": time_text(timing.started_at),
        "provider": clean_name(labels.get("provider")) or asked.provider,
        "session_id": clean_name(labels.get("session")),
        "run_id": clean_name(labels.get("run")),
        **clean_parts(
            prompt_tokens,
            {"cache_read_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens},
        ),
        **clean_parts(completion_tokens, {"reasoning_tokens": usage.reasoning_tokens}),
        "ttft_ms": None if timing.first_output is None else _whole_ms(timing.first_output),
        "error_type": None if error is None else error_type(error),
    }
    return {name: value for name, value in trace.items() if value is not None}


def _whole_ms(seconds: float) -> int:
    return min(max(0, round(seconds * 1000)), 2**31 - 1)


def begin_call(
    recorder: Recorder,
    *,
    model: Any,
    prompt: Any,
    labels: Mapping[str, Any],
    provider: str | None,
    own: Mapping[str, Any] | None = None,
) -> Call | None:
    """
    Starts to record a call; None if it is not sampled or cannot be recorded. Labels of a `with` block replace those of
    the wrapped client, and `own` labels replace both.
    """
    try:
        if not recorder.wants_call():
            return None
        merged = {**labels, **current_labels(), **(own or {})}
        return Call(recorder, Asked(model, as_text(prompt), merged, provider))
    except Exception as error:
        recorder.report(error)
        return None
