"""Observes what is read from the streams of the SDKs, which stay the SDKs' own objects."""

from __future__ import annotations

import sys
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

from .call import Answer, Call
from .process import thread_state


class Collector(Protocol):
    """Assembles the answer from the items of a stream."""

    def see(self, item: Any) -> bool:
        """False for items that the caller must not receive, because only the wrapper requested them."""
        ...

    def has_output(self) -> bool:
        """Whether a part of the answer has arrived: text, a tool call or reasoning."""
        ...

    def answer(self) -> Answer: ...


open_observers: weakref.WeakSet[Observer] = weakref.WeakSet()
"""Streams that are still open: they are recorded at the end of the process."""


class Observer:
    """Settles a streamed call when its stream ends, fails, is closed or is forgotten. No method raises."""

    __slots__ = ("__weakref__", "_call", "_collector", "_report", "_saw_some")

    def __init__(self, call: Call, collector: Collector, report: Callable[[Exception], None]) -> None:
        self._call = call
        self._collector = collector
        self._report = report
        self._saw_some = False
        open_observers.add(self)

    def see(self, item: Any) -> bool:
        """Whether the caller may receive the item."""
        try:
            self._saw_some = True
            is_for_caller = self._collector.see(item)
            if self._collector.has_output():
                self._call.output_began()
            return is_for_caller
        except Exception as error:
            self._report(error)
            return True

    def end(self) -> None:
        self._call.end(self._answer())

    def fail(self, error: BaseException) -> None:
        """A caller that stops reading has what it needs: that is a failure only if nothing had arrived."""
        is_left = isinstance(error, GeneratorExit) or type(error).__name__ in ("CancelledError", "Cancelled")
        if is_left and self._saw_some:
            self.end()
        else:
            self._call.fail(error, self._answer())

    def _answer(self) -> Answer:
        try:
            return self._collector.answer()
        except Exception as error:
            self._report(error)
            return Answer()


class _Observed:
    """What both kinds of iterators share. Everything else is the original's."""

    def __init__(self, source: Any, observer: Observer) -> None:
        self._source = source
        self._observer = observer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __del__(self) -> None:
        # A stream that is left early is recorded when it is forgotten.
        observer = self.__dict__.get("_observer")
        # At the end of the interpreter the call is settled already, and no thread can be started.
        if observer is not None and not sys.is_finalizing():
            thread_state.is_finalizing_object = True
            try:
                observer.end()
            finally:
                thread_state.is_finalizing_object = False


class ObservedIterator(_Observed):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                item = next(self._source)
            except StopIteration:
                self._observer.end()
                raise
            except BaseException as error:
                self._observer.fail(error)
                raise
            if self._observer.see(item):
                return item

    def close(self) -> None:
        try:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        finally:
            self._observer.end()


class ObservedAsyncIterator(_Observed):
    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                item = await self._source.__anext__()
            except StopAsyncIteration:
                self._observer.end()
                raise
            except BaseException as error:
                self._observer.fail(error)
                raise
            if self._observer.see(item):
                return item

    async def aclose(self) -> None:
        try:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._observer.end()


def observe_stream(stream: Any, observer: Observer) -> None:
    """
    Observes a stream of the SDKs of OpenAI and Anthropic, in which every reader takes its items from one iterator. The
    stream belongs to this one call, so it may be changed.
    """
    source = getattr(stream, "_iterator", None)
    if source is None:
        observer.end()
        return
    is_async = hasattr(source, "__anext__")
    stream._iterator = (ObservedAsyncIterator if is_async else ObservedIterator)(source, observer)
    close = stream.close

    if is_async:

        async def close_async() -> None:
            try:
                await close()
            finally:
                observer.end()

        stream.close = close_async
    else:

        def close_sync() -> None:
            try:
                close()
            finally:
                observer.end()

        stream.close = close_sync
