"""A logger for LiteLLM. LiteLLM is imported only when one is created."""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from .call import Recorder, Trace, size_of, time_text
from .error_type import error_type
from .labels import current_labels, set_labels
from .text import as_text, clean_count, clean_name, clean_parts, clean_usd, error_text, field, items

_REMEMBERED_MAX = 10_000
"""Calls that are under way, and calls that were recorded just now."""


def litellm_logger(recorder: Recorder | None, labels: Mapping[str, Any]) -> Any:
    base = importlib.import_module("litellm.integrations.custom_logger").CustomLogger
    calls = _Calls(recorder, set_labels(labels))

    def log_pre_api_call(self: Any, model: Any, messages: Any, kwargs: Any) -> None:
        calls.begin(kwargs)

    def log_event(self: Any, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        calls.end(kwargs)

    async def async_log_event(self: Any, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        calls.end(kwargs)

    methods = {
        "log_pre_api_call": log_pre_api_call,
        "log_success_event": log_event,
        "log_failure_event": log_event,
        "async_log_success_event": async_log_event,
        "async_log_failure_event": async_log_event,
    }
    return type("TraceTallyLogger", (base,), methods)()


class _Calls:
    def __init__(self, recorder: Recorder | None, labels: dict[str, Any]) -> None:
        self._recorder = recorder
        self._labels = labels
        self._lock = threading.Lock()
        self._begun: OrderedDict[Any, Mapping[str, Any]] = OrderedDict()
        self._ended: OrderedDict[Any, None] = OrderedDict()

    def begin(self, kwargs: Any) -> None:
        """The hooks at the end run in threads, which do not have the labels of the caller."""
        try:
            labels, call_id = current_labels(), field(kwargs, "litellm_call_id")
            if labels and isinstance(call_id, str):
                with self._lock:
                    _remember(self._begun, call_id, labels)
        except Exception as error:
            self._report(error)

    def end(self, kwargs: Any) -> None:
        try:
            payload = field(kwargs, "standard_logging_object")
            recorder = self._recorder
            if payload is None or recorder is None or not self._is_first(payload):
                return
            if not recorder.wants_call():
                return
            call_id = field(kwargs, "litellm_call_id")
            with self._lock:
                labels = self._begun.pop(call_id, None) or current_labels()
            trace = _trace_of(payload, field(kwargs, "exception"), {**self._labels, **labels})
            recorder.enqueue(trace, size_of(trace))
        except Exception as error:
            self._report(error)

    def _is_first(self, payload: Any) -> bool:
        """The hooks for threads and those for tasks can both run for one call."""
        key = (field(payload, "litellm_call_id"), field(payload, "id"), field(payload, "status"))
        with self._lock:
            if key in self._ended:
                return False
            _remember(self._ended, key, None)
        return True

    def _report(self, error: Exception) -> None:
        if self._recorder is not None:
            self._recorder.report(error)


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    if len(known) > _REMEMBERED_MAX:
        known.popitem(last=False)


def _trace_of(payload: Any, error: Any, labels: Mapping[str, Any]) -> Trace:
    started, ended, first = (field(payload, name) for name in ("startTime", "endTime", "completionStartTime"))
    has_failed = field(payload, "status") == "failure"
    usage = field(field(payload, "metadata"), "usage_object")
    prompt_tokens = clean_count(field(payload, "prompt_tokens"))
    completion_tokens = clean_count(field(payload, "completion_tokens"))
    prompt_details = field(usage, "prompt_tokens_details")
    response = field(payload, "response")
    model = clean_name(field(payload, "model")) or "unknown"
    response_model = clean_name(field(response, "model"))
    # LiteLLM says 0 if it does not know the price, and then the server may know it.
    cost = clean_usd(field(payload, "response_cost"))
    is_streamed = bool(field(payload, "stream")) and not has_failed
    trace: Trace = {
        "model": model,
        "input": as_text(field(payload, "messages")),
        "output": None if has_failed else _output_of(response),
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "latency_ms": _ms_between(started, ended),
        "cost_usd": cost if cost or field(payload, "cache_hit") else None,
        "status": "error" if has_failed else "success",
        "error_message": _error_message(payload, error) if has_failed else None,
        "feature_name": clean_name(labels.get("feature")),
        "user_identifier": clean_name(labels.get("user")) or clean_name(field(payload, "end_user")),
        "response_model": None if response_model == model else response_model,
        "started_at": time_text(started) if isinstance(started, int | float) else None,
        "provider": clean_name(labels.get("provider")) or clean_name(field(payload, "custom_llm_provider")),
        "session_id": clean_name(labels.get("session")),
        "run_id": clean_name(labels.get("run")),
        **clean_parts(
            prompt_tokens,
            {
                "cache_read_tokens": field(prompt_details, "cached_tokens"),
                "cache_write_tokens": field(prompt_details, "cache_creation_tokens"),
            },
        ),
        **clean_parts(
            completion_tokens,
            {"reasoning_tokens": field(field(usage, "completion_tokens_details"), "reasoning_tokens")},
        ),
        "ttft_ms": _ms_between(started, first) if is_streamed else None,
        "error_type": _error_type(payload, error) if has_failed else None,
    }
    return {name: value for name, value in trace.items() if value is not None}


def _ms_between(start: Any, end: Any) -> int | None:
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        return None
    return clean_count(max(0, round((end - start) * 1000)))


def _output_of(response: Any) -> str | None:
    """The messages of a chat completion; other responses as they are."""
    choices = list(items(field(response, "choices")))
    messages = [field(choice, "message") or field(choice, "text") for choice in choices]
    if not messages:
        # The vectors of embeddings are not recorded.
        return None if field(response, "data") is not None else as_text(response)
    if len(messages) == 1:
        only = messages[0]
        has_tools = bool(items(field(only, "tool_calls"))) or field(only, "function_call") is not None
        return as_text(only if has_tools or isinstance(only, str) else field(only, "content"))
    return as_text(messages)


def _error_message(payload: Any, error: Any) -> str:
    return (
        error_text(error) if isinstance(error, BaseException) else str(field(payload, "error_str") or "unknown error")
    )


def _error_type(payload: Any, error: Any) -> str | None:
    if isinstance(error, BaseException):
        return error_type(error)
    code = field(field(payload, "error_information"), "error_code")
    return error_type({"status": int(code)}) if isinstance(code, str) and code.isdigit() else None
