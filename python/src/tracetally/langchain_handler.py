"""A callback handler for LangChain and LangGraph. LangChain is imported only when one is created."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from typing import Any

from .call import Answer, Call, Recorder, Usage, begin_call
from .labels import set_labels
from .text import as_text, field, items


def langchain_handler(recorder: Recorder | None, labels: Mapping[str, Any]) -> Any:
    base = importlib.import_module("langchain_core.callbacks.base").BaseCallbackHandler
    calls = _Calls(recorder, set_labels(labels))

    def on_chat_model_start(self: Any, serialized: Any, messages: Any, *, run_id: Any, **more: Any) -> None:
        calls.begin(run_id, _messages_of(messages), more, serialized)

    def on_llm_start(self: Any, serialized: Any, prompts: Any, *, run_id: Any, **more: Any) -> None:
        calls.begin(run_id, prompts[0] if len(prompts) == 1 else prompts, more, serialized)

    def on_llm_new_token(self: Any, token: Any, *, run_id: Any, **more: Any) -> None:
        calls.note_output(run_id)

    def on_stream_event(self: Any, event: Any, *, run_id: Any, **more: Any) -> None:
        if "delta" in str(field(event, "event")):
            calls.note_output(run_id)

    def on_llm_end(self: Any, response: Any, *, run_id: Any, **more: Any) -> None:
        calls.end(run_id, response)

    def on_llm_error(self: Any, error: Any, *, run_id: Any, **more: Any) -> None:
        calls.fail(run_id, error, more.get("response"))

    methods = {
        # In the caller's thread, whose labels apply. The methods take some microseconds.
        "run_inline": True,
        "on_chat_model_start": on_chat_model_start,
        "on_llm_start": on_llm_start,
        "on_llm_new_token": on_llm_new_token,
        "on_stream_event": on_stream_event,
        "on_llm_end": on_llm_end,
        "on_llm_error": on_llm_error,
    }
    return type("TraceTallyHandler", (base,), methods)()


class _Calls:
    def __init__(self, recorder: Recorder | None, labels: dict[str, Any]) -> None:
        self._recorder = recorder
        self._labels = labels
        self._lock = threading.Lock()
        self._open: dict[Any, Call] = {}

    def begin(self, run_id: Any, prompt: Any, more: Mapping[str, Any], serialized: Any) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        try:
            metadata = more.get("metadata") or {}
            parameters = more.get("invocation_params") or {}
            names = (parameters.get("model"), parameters.get("model_name"), metadata.get("ls_model_name"))
            model = next((name for name in names if name), field(serialized, "name"))
            call = begin_call(
                recorder,
                model=model,
                prompt=prompt,
                labels={**_labels_in(metadata), **self._labels},
                provider=metadata.get("ls_provider"),
            )
            if call is not None:
                with self._lock:
                    self._open[run_id] = call
        except Exception as error:
            recorder.report(error)

    def note_output(self, run_id: Any) -> None:
        call = self._open.get(run_id)
        if call is not None:
            call.output_began()

    def end(self, run_id: Any, result: Any) -> None:
        call = self._close(run_id)
        if call is not None:
            call.end(self._answer_of(result))

    def fail(self, run_id: Any, error: Any, result: Any) -> None:
        call = self._close(run_id)
        if call is not None:
            call.fail(error, self._answer_of(result) if result is not None else None)

    def _close(self, run_id: Any) -> Call | None:
        with self._lock:
            return self._open.pop(run_id, None)

    def _answer_of(self, result: Any) -> Answer:
        try:
            return _answer_of(result)
        except Exception as error:
            if self._recorder is not None:
                self._recorder.report(error)
            return Answer()


def _labels_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """LangGraph names the conversation of a run."""
    thread = metadata.get("thread_id")
    return {} if thread is None else {"session": str(thread)}


def _messages_of(batches: Any) -> Any:
    plain = [[_message_of(message) for message in items(batch)] for batch in items(batches)]
    return plain[0] if len(plain) == 1 else plain


def _message_of(message: Any) -> dict[str, Any]:
    said = {"role": field(message, "type"), "content": field(message, "content")}
    tools = items(field(message, "tool_calls"))
    return {**said, "tool_calls": list(tools)} if tools else said


def _answer_of(result: Any) -> Answer:
    generations = [each for prompt in items(field(result, "generations")) for each in items(prompt)]
    messages = [field(each, "message") for each in generations]
    outputs = [
        field(each, "text") if message is None else _output_of(message)
        for each, message in zip(generations, messages, strict=True)
    ]
    metadata = [field(message, "response_metadata") or {} for message in messages if message is not None]
    first = metadata[0] if metadata else {}
    whole = field(result, "llm_output") or {}
    return Answer(
        output=as_text(outputs if len(outputs) > 1 else outputs[0] if outputs else None),
        usage=_usage_of(messages, whole),
        response_model=first.get("model_name") or first.get("model") or field(whole, "model_name"),
        response_id=first.get("id") or field(whole, "id") or field(messages[0] if messages else None, "id"),
    )


def _output_of(message: Any) -> Any:
    tools = items(field(message, "tool_calls"))
    if tools:
        return _message_of(message)
    content = field(message, "content")
    texts = [part if isinstance(part, str) else field(part, "text") for part in items(content)]
    return "".join(text for text in texts if isinstance(text, str)) if isinstance(content, list) else content


def _usage_of(messages: list[Any], whole: Any) -> Usage | None:
    counts = [usage for usage in (field(message, "usage_metadata") for message in messages) if usage is not None]
    if not counts:
        older = field(whole, "token_usage")
        if older is None:
            return None
        return Usage(field(older, "prompt_tokens"), field(older, "completion_tokens"))

    def total(*path: str) -> int | None:
        found: list[int] = []
        for each in counts:
            value: Any = each
            for name in path:
                value = field(value, name)
            if isinstance(value, int):
                found.append(value)
        return sum(found) if found else None

    return Usage(
        total("input_tokens"),
        total("output_tokens"),
        total("input_token_details", "cache_read"),
        total("input_token_details", "cache_creation"),
        total("output_token_details", "reasoning"),
    )
