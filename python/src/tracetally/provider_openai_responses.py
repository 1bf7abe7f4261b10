"""The Responses API of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .call import Answer, Usage
from .stainless import Request
from .text import field, items


def read_responses_request(body: Mapping[str, Any], is_read_as_bytes: bool) -> Request:
    instructions, prompt = body.get("instructions"), body.get("input")
    return Request(
        model=body.get("model"),
        prompt=prompt if instructions is None else {"instructions": instructions, "input": prompt},
        answer=lambda response: _answer(response, list(items(field(response, "output")))),
        collector=_EventCollector,
    )


def _answer(response: Any, output: list[Any]) -> Answer:
    has_failed = field(response, "status") == "failed"
    return Answer(
        output=_output_of(output),
        usage=_usage_of(field(response, "usage")),
        response_model=field(response, "model"),
        response_id=field(response, "id"),
        error=(field(response, "error") or "The response failed.") if has_failed else None,
    )


def _usage_of(counts: Any) -> Usage | None:
    if counts is None:
        return None
    details = field(counts, "input_tokens_details")
    return Usage(
        input_tokens=field(counts, "input_tokens"),
        output_tokens=field(counts, "output_tokens"),
        cache_read_tokens=field(details, "cached_tokens"),
        cache_write_tokens=field(details, "cache_write_tokens"),
        reasoning_tokens=field(field(counts, "output_tokens_details"), "reasoning_tokens"),
    )


def _output_of(output: list[Any]) -> Any:
    """Plain text if the answer is text only; JSON if it contains tool calls."""
    said = [item for item in output if field(item, "type") != "reasoning"]
    if any(field(item, "type") != "message" for item in said):
        return said
    parts = [part for item in said for part in items(field(item, "content"))]
    texts = [field(part, "text") or field(part, "refusal") or "" for part in parts]
    return "".join(str(text) for text in texts) if parts else None


class _EventCollector:
    """The last event contains the whole answer. If the stream ends before it, the items and the text so far are the answer."""

    def __init__(self) -> None:
        self._response: Any = None
        self._items: list[Any] = []
        self._text: list[str] = []
        self._has_output = False

    def see(self, item: Any) -> bool:
        kind = field(item, "type")
        if isinstance(kind, str) and kind.endswith(".delta"):
            # Text, arguments of a tool and summaries of thoughts all arrive in such events.
            self._has_output = True
            delta = field(item, "delta")
            if kind in ("response.output_text.delta", "response.refusal.delta") and isinstance(delta, str):
                self._text.append(delta)
        response = field(item, "response")
        if response is not None:
            self._response = response
        done = field(item, "item")
        if kind == "response.output_item.done" and done is not None:
            self._items.append(done)
            if field(done, "type") == "message":
                self._text.clear()
        return True

    def has_output(self) -> bool:
        return self._has_output

    def answer(self) -> Answer:
        whole = list(items(field(self._response, "output")))
        open_text = "".join(self._text)
        rest: list[Any] = []
        if open_text:
            rest.append({"type": "message", "content": [{"type": "output_text", "text": open_text}]})
        return _answer(self._response, whole or [*self._items, *rest])
