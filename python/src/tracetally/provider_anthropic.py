"""Messages of Anthropic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .call import Answer, Usage
from .stainless import Request
from .text import field, items


def read_messages_request(body: Mapping[str, Any], is_read_as_bytes: bool) -> Request:
    system, messages = body.get("system"), body.get("messages")
    return Request(
        model=body.get("model"),
        prompt=messages if system is None else {"system": system, "messages": messages},
        answer=lambda message: _answer(message, list(items(field(message, "content"))), field(message, "usage")),
        collector=_EventCollector,
    )


def _answer(message: Any, blocks: list[Any], usage: Any) -> Answer:
    return Answer(
        output=_output_of(blocks),
        usage=_usage_of(usage),
        response_model=field(message, "model"),
        response_id=field(message, "id"),
    )


def _usage_of(counts: Any) -> Usage | None:
    """`input_tokens` does not include tokens that were read from the cache or written to it."""
    if counts is None:
        return None
    read = field(counts, "cache_read_input_tokens")
    written = field(counts, "cache_creation_input_tokens")
    plain = field(counts, "input_tokens")
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=field(counts, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=field(field(counts, "output_tokens_details"), "thinking_tokens"),
    )


def _output_of(blocks: list[Any]) -> Any:
    """Plain text if the answer is text only; JSON if it contains tool calls."""
    said = [block for block in blocks if field(block, "type") not in ("thinking", "redacted_thinking")]
    if any(field(block, "type") != "text" for block in said):
        return said
    return "".join(str(field(block, "text") or "") for block in said) if said else None


class _OpenBlock:
    """A block in progress. The input of a tool arrives as pieces of JSON."""

    def __init__(self, block: Any) -> None:
        # Copied now: the SDK's own helper adds what follows to the same object.
        names = ("type", "id", "name", "input", "tool_use_id", "content")
        self._start = {name: field(block, name) for name in names}
        self.texts = [str(field(block, "text") or "")]
        self.json: list[str] = []

    def whole(self) -> dict[str, Any]:
        block = {name: value for name, value in self._start.items() if value is not None}
        text = "".join(self.texts)
        if text or self._start["type"] == "text":
            block["text"] = text
        if self.json:
            block["input"] = _parsed_or_text("".join(self.json))
        return block


def _parsed_or_text(text: str) -> Any:
    """A stream that is left early may end in the middle of the JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class _EventCollector:
    def __init__(self) -> None:
        self._message: Any = None
        self._counts: dict[str, Any] = {}
        self._blocks: dict[int, _OpenBlock] = {}
        self._has_output = False

    def see(self, item: Any) -> bool:
        kind = field(item, "type")
        if kind == "message_start":
            self._message = field(item, "message")
            self._count(field(self._message, "usage"))
        elif kind == "content_block_start":
            self._blocks[field(item, "index") or 0] = _OpenBlock(field(item, "content_block"))
        elif kind == "content_block_delta":
            self._has_output = True
            self._grow(field(item, "index") or 0, field(item, "delta"))
        elif kind == "message_delta":
            self._count(field(item, "usage"))
        return True

    def _grow(self, index: int, delta: Any) -> None:
        block = self._blocks.get(index)
        text, piece = field(delta, "text"), field(delta, "partial_json")
        if block is not None and isinstance(text, str):
            block.texts.append(text)
        if block is not None and isinstance(piece, str):
            block.json.append(piece)

    def _count(self, usage: Any) -> None:
        """Totals of the whole message; missing ones keep the values of the start event."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens_details",
        ):
            value = field(usage, name)
            if value is not None:
                self._counts[name] = value

    def has_output(self) -> bool:
        return self._has_output

    def answer(self) -> Answer:
        blocks: list[Any] = [block.whole() for _, block in sorted(self._blocks.items())]
        return _answer(self._message, blocks, self._counts or None)
