"""Chat completions and embeddings of OpenAI, and of the many servers with the same protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .call import Answer, Usage
from .stainless import Request
from .text import field, items


def read_chat_request(body: Mapping[str, Any], is_read_as_bytes: bool) -> Request:
    with_usage = None if is_read_as_bytes else _ask_for_usage(body)
    return Request(
        model=body.get("model"),
        prompt=body.get("messages"),
        answer=_completion_answer,
        collector=lambda: _ChunkCollector(with_usage is not None),
        body=with_usage,
    )


def _ask_for_usage(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    Streams report their usage only on request. If the caller sets the option, including `stream_options=None`, it is not
    changed: some servers with this protocol reject the field.
    """
    options = body.get("stream_options", {})
    if body.get("stream") is not True or not isinstance(options, Mapping) or "include_usage" in options:
        return None
    return {"stream_options": {**options, "include_usage": True}}


def _completion_answer(completion: Any) -> Answer:
    messages = [field(choice, "message") for choice in items(field(completion, "choices"))]
    return Answer(
        output=_output_of([_message_of(message) for message in messages]),
        usage=usage_of(field(completion, "usage")),
        response_model=field(completion, "model"),
        response_id=field(completion, "id"),
    )


def usage_of(counts: Any) -> Usage | None:
    if counts is None:
        return None
    prompt = field(counts, "prompt_tokens_details")
    completion = field(counts, "completion_tokens_details")
    return Usage(
        input_tokens=field(counts, "prompt_tokens"),
        output_tokens=field(counts, "completion_tokens"),
        cache_read_tokens=field(prompt, "cached_tokens"),
        cache_write_tokens=field(prompt, "cache_write_tokens"),
        reasoning_tokens=field(completion, "reasoning_tokens"),
    )


def _output_of(outputs: list[Any]) -> Any:
    """Plain text if the answer is text only; JSON for tool calls and for several choices."""
    if len(outputs) > 1:
        return outputs
    return outputs[0] if outputs else None


def _message_of(message: Any) -> Any:
    text = field(message, "content")
    if text is None:
        text = field(message, "refusal")
    if text is None:
        text = field(field(message, "audio"), "transcript")
    tools = list(items(field(message, "tool_calls")))
    function = field(message, "function_call")
    if not tools and function is None:
        return text
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if tools:
        said["tool_calls"] = tools
    if function is not None:
        said["function_call"] = function
    return said


class _ChunkCollector:
    def __init__(self, hides_usage: bool) -> None:
        self._hides_usage = hides_usage
        self._messages: dict[int, _MessageBuilder] = {}
        self._model: Any = None
        self._id: Any = None
        self._counts: Any = None
        self._has_output = False

    def see(self, item: Any) -> bool:
        self._model = self._model or field(item, "model")
        self._id = self._id or field(item, "id")
        choices = field(item, "choices")
        for choice in items(choices):
            delta = field(choice, "delta")
            if delta is None:
                continue
            builder = self._messages.setdefault(field(choice, "index") or 0, _MessageBuilder())
            self._has_output = builder.add(delta) or self._has_output
        usage = field(item, "usage")
        if usage is not None:
            self._counts = usage
        return not self._hides_usage or self._is_for_caller(item, choices, usage)

    def _is_for_caller(self, item: Any, choices: Any, usage: Any) -> bool:
        """If the wrapper requested the usage, every chunk has the field; only the last one has a value, and nothing else."""
        if usage is not None:
            return bool(choices != [])
        fields_set = getattr(item, "model_fields_set", None)
        if isinstance(fields_set, set):
            fields_set.discard("usage")
        return True

    def has_output(self) -> bool:
        return self._has_output

    def answer(self) -> Answer:
        messages = [_message_of(builder.message()) for _, builder in sorted(self._messages.items())]
        return Answer(
            output=_output_of(messages),
            usage=usage_of(self._counts),
            response_model=self._model,
            response_id=self._id,
        )


class _MessageBuilder:
    """Assembles one message from its deltas."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._tools: dict[int, dict[str, Any]] = {}

    def add(self, delta: Any) -> bool:
        """Whether the delta has a part of the answer. The first one has only the role."""
        is_output = False
        for name, source in (
            ("content", delta),
            ("refusal", delta),
            ("transcript", field(delta, "audio")),
            ("reasoning_content", delta),
            ("reasoning", delta),
        ):
            text = field(source, name)
            if isinstance(text, str):
                self._texts.setdefault(name, []).append(text)
                is_output = is_output or text != ""
        for piece in items(field(delta, "tool_calls")):
            self._add_tool(piece)
            is_output = True
        return is_output

    def _add_tool(self, piece: Any) -> None:
        tool = self._tools.setdefault(field(piece, "index") or 0, {})
        for name in ("id", "type"):
            if field(piece, name) is not None:
                tool[name] = field(piece, name)
        for kind, text_name in (("function", "arguments"), ("custom", "input")):
            part = field(piece, kind)
            if part is None:
                continue
            known = tool.setdefault(kind, {"name": "", text_name: ""})
            for name in ("name", text_name):
                known[name] += field(part, name) or ""

    def message(self) -> dict[str, Any]:
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        return {
            "content": texts.get("content"),
            "refusal": texts.get("refusal"),
            "audio": {"transcript": texts["transcript"]} if "transcript" in texts else None,
            "tool_calls": [tool for _, tool in sorted(self._tools.items())],
        }


def read_embeddings_request(body: Mapping[str, Any], is_read_as_bytes: bool) -> Request:
    """The vectors are not recorded."""
    return Request(
        model=body.get("model"),
        prompt=body.get("input"),
        answer=lambda data: Answer(usage=usage_of(field(data, "usage")), response_model=field(data, "model")),
        collector=_NoCollector,
    )


class _NoCollector:
    def see(self, item: Any) -> bool:
        return True

    def has_output(self) -> bool:
        return False

    def answer(self) -> Answer:
        return Answer()
