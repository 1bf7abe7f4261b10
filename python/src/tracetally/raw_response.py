"""Observes responses that the caller parses or reads: `with_raw_response` and `with_streaming_response`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from .call import Answer, Call
from .process import thread_state
from .streams import Collector, Observer, observe_stream

_BYTES_MAX = 16 * 1024 * 1024
"""A longer body is recorded without its content."""


class Reading:
    """How the answers to one call are read."""

    def __init__(
        self,
        call: Call,
        answer: Callable[[Any], Answer],
        collector: Callable[[], Collector],
        report: Callable[[Exception], None],
    ) -> None:
        self.call = call
        self.answer = answer
        self.collector = collector
        self.report = report

    def observer(self) -> Observer:
        return Observer(self.call, self.collector(), self.report)


def read_body(data: bytes, is_events: bool, reading: Reading) -> Answer:
    """The answer in a body that is complete or was left early."""
    if not is_events:
        return reading.answer(json.loads(data))
    collector = reading.collector()
    for event in data.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        text = b"\n".join(lines)
        if not text or text == b"[DONE]":
            continue
        try:
            item = json.loads(text)
        except ValueError:  # The last event may be cut.
            continue
        collector.see(item)
        if isinstance(item, dict) and item.get("error"):
            return collector.answer()._replace(error=item["error"])
    return collector.answer()


class _Body:
    """The bytes of a response, collected while the caller reads them."""

    def __init__(self, reading: Reading, is_events: bool) -> None:
        self._reading = reading
        self._is_events = is_events
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_parsed = False
        """The stream of parsed items is observed instead."""

    def add(self, piece: bytes) -> None:
        if self.is_parsed:
            return
        if self._is_events:
            self._reading.call.output_began()
        self._size += len(piece)
        if self._size <= _BYTES_MAX:
            self._pieces.append(piece)

    def end(self) -> None:
        if self.is_parsed:
            return
        data, reading, is_events = b"".join(self._pieces), self._reading, self._is_events
        self._pieces.clear()
        reading.call.end_later(lambda: read_body(data, is_events, reading), len(data))

    def fail(self, error: BaseException) -> None:
        if not self.is_parsed:
            self._reading.call.fail(error)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            thread_state.is_finalizing_object = True
            try:
                self.end()
            finally:
                thread_state.is_finalizing_object = False


def observe_raw(raw: Any, reading: Reading, is_stream: bool) -> None:
    """Records the call when the caller has read the response, by whichever of its methods."""
    http_response: Any = raw.http_response
    body = _Body(reading, is_stream)
    raw.parse = _observed_parse(raw, reading, body)
    if getattr(http_response, "is_stream_consumed", False) and not is_stream:
        body.add(http_response.content)
        body.end()
        return
    http_response.iter_bytes = _observed_iter(http_response.iter_bytes, body)
    http_response.aiter_bytes = _observed_aiter(http_response.aiter_bytes, body)


def _observed_parse(raw: Any, reading: Reading, body: _Body) -> Callable[..., Any]:
    parse = raw.parse

    def take(parsed: Any) -> Any:
        try:
            # Parsing again returns the same stream.
            if hasattr(parsed, "_iterator") and not body.is_parsed:
                body.is_parsed = True
                observe_stream(parsed, reading.observer())
        except Exception as error:
            reading.report(error)
        return parsed

    def observed(*args: Any, **kwargs: Any) -> Any:
        parsed = parse(*args, **kwargs)
        if not hasattr(parsed, "__await__"):
            return take(parsed)

        async def awaited() -> Any:
            return take(await parsed)

        return awaited()

    return observed


def _observed_iter(iter_bytes: Callable[..., Any], body: _Body) -> Callable[..., Any]:
    def observed(*args: Any, **kwargs: Any) -> Any:
        try:
            for piece in iter_bytes(*args, **kwargs):
                body.add(piece)
                yield piece
        except GeneratorExit:
            raise
        except BaseException as error:
            body.fail(error)
            raise
        body.end()

    return observed


def _observed_aiter(aiter_bytes: Callable[..., Any], body: _Body) -> Callable[..., Any]:
    async def observed(*args: Any, **kwargs: Any) -> Any:
        try:
            async for piece in aiter_bytes(*args, **kwargs):
                body.add(piece)
                yield piece
        except GeneratorExit:
            raise
        except BaseException as error:
            body.fail(error)
            raise
        body.end()

    return observed
