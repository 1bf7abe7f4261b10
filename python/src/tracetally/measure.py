"""Records any block of code or function as one call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypedDict, TypeVar

from .call import Answer, Call, Recorder, Usage, begin_call
from .labels import Labels, check_labels, set_labels
from .text import as_text

F = TypeVar("F", bound=Callable[..., Any])


class MeasuredAnswer(TypedDict, total=False):
    """What becomes known about a call while it runs."""

    model: str
    """Replaces the model of the call, for example if a router chose it."""
    response_model: str
    """The exact model that answered, if it differs; used for the price."""
    output: object
    """Text, or anything that can be converted to JSON."""
    prompt_tokens: int
    """All tokens that were sent, including cached ones."""
    completion_tokens: int
    cached_tokens: int
    """How many of the prompt tokens came from the provider's cache."""
    cache_write_tokens: int
    """How many of the prompt tokens were written to the provider's cache."""
    reasoning_tokens: int
    """How many of the completion tokens were spent on reasoning."""
    cost_usd: float
    error_message: str
    """Marks the call as failed although nothing was raised."""
    response_id: str
    """The provider's id of the answer."""


class MeasuredCall:
    """A measured call in progress."""

    def __init__(self, call: Call | None) -> None:
        self._call = call
        self._known: dict[str, Any] = {}

    def set(self, **known: Any) -> None:
        """Says what became known about the call: the fields of MeasuredAnswer. Later values replace earlier ones. Never raises."""
        self._known.update(known)

    def output_began(self) -> None:
        """The first part of a streamed answer has arrived: the time to the first token."""
        if self._call is not None:
            self._call.output_began()

    def end(self) -> None:
        if self._call is not None:
            self._call.end(self._answer())

    def fail(self, error: BaseException) -> None:
        if self._call is not None:
            self._call.fail(error, self._answer())

    def add_output(self, output: Any) -> None:
        """What a measured function returned, unless it said itself what the output is."""
        if "output" not in self._known:
            self._known["output"] = output

    def _answer(self) -> Answer:
        known = self._known
        return Answer(
            model=known.get("model"),
            response_model=known.get("response_model"),
            response_id=known.get("response_id"),
            # Converted now: the caller may change it later.
            output=as_text(known.get("output")),
            usage=Usage(
                known.get("prompt_tokens"),
                known.get("completion_tokens"),
                known.get("cached_tokens"),
                known.get("cache_write_tokens"),
                known.get("reasoning_tokens"),
            ),
            cost_usd=known.get("cost_usd"),
            error=known.get("error_message"),
        )


_current: ContextVar[MeasuredCall | None] = ContextVar("tracetally_call", default=None)


def current_call() -> MeasuredCall:
    """The innermost measured call of this context; outside of one, a call that is not recorded."""
    return _current.get() or MeasuredCall(None)


class Measure:
    """A context manager and a decorator that record one call each time."""

    def __init__(self, recorder: Recorder | None, model: str, prompt: Any, labels: Mapping[str, Any]) -> None:
        check_labels(labels)
        self._recorder = recorder
        self._model = model
        self._prompt = prompt
        self._provider = labels.get("provider")
        self._labels = set_labels(labels)
        self._open: list[tuple[MeasuredCall, Any]] = []

    def _begin(self, prompt: Any) -> MeasuredCall:
        if self._recorder is None:
            return MeasuredCall(None)
        return MeasuredCall(
            begin_call(self._recorder, model=self._model, prompt=prompt, labels={}, provider=None, own=self._labels)
        )

    def __enter__(self) -> MeasuredCall:
        call = self._begin(self._prompt)
        self._open.append((call, _current.set(call)))
        return call

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        call, token = self._open.pop()
        try:
            _current.reset(token)
        except ValueError:
            # A generator may be closed in another context than it was started in.
            pass
        if error is None or isinstance(error, GeneratorExit):
            call.end()
        else:
            call.fail(error)

    async def __aenter__(self) -> MeasuredCall:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        """Records every call of the function: its arguments, what it returns or yields, and its errors."""
        import inspect

        if inspect.isasyncgenfunction(function):
            measured: Any = self._async_generator(function)
        elif inspect.iscoroutinefunction(function):
            measured = self._coroutine(function)
        elif inspect.isgeneratorfunction(function):
            measured = self._generator(function)
        else:
            measured = self._function(function)
        return functools.wraps(function)(measured)  # type: ignore[return-value]

    def _once(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Measure:
        """One use of the decorator. Calls may overlap, so each has a state of its own."""
        prompt = self._prompt
        if prompt is None and self._recorder is not None:
            prompt = _arguments(args, kwargs)
        return Measure(self._recorder, self._model, prompt, {**self._labels})

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **kwargs: Any) -> Any:
            with self._once(args, kwargs) as call:
                result = function(*args, **kwargs)
                call.add_output(result)
                return result

        return measured

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def measured(*args: Any, **kwargs: Any) -> Any:
            with self._once(args, kwargs) as call:
                result = await function(*args, **kwargs)
                call.add_output(result)
                return result

        return measured

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **kwargs: Any) -> Any:
            pieces: list[Any] = []
            with self._once(args, kwargs) as call:
                try:
                    # `yield from` passes on what the caller sends, throws and gets back.
                    return (yield from _Noting(function(*args, **kwargs), pieces, call))
                finally:
                    call.add_output(_joined(pieces))

        return measured

    def _async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def measured(*args: Any, **kwargs: Any) -> Any:
            pieces: list[Any] = []
            with self._once(args, kwargs) as call:
                source = function(*args, **kwargs)
                try:
                    async for piece in source:
                        call.output_began()
                        pieces.append(piece)
                        yield piece
                finally:
                    call.add_output(_joined(pieces))
                    await source.aclose()

        return measured


class _Noting:
    """A generator whose items are noted."""

    def __init__(self, source: Any, pieces: list[Any], call: MeasuredCall) -> None:
        self._source = source
        self._pieces = pieces
        self._call = call

    def __iter__(self) -> _Noting:
        return self

    def __next__(self) -> Any:
        return self._note(next(self._source))

    def send(self, value: Any) -> Any:
        return self._note(self._source.send(value))

    def throw(self, *error: Any) -> Any:
        return self._note(self._source.throw(*error))

    def close(self) -> None:
        self._source.close()

    def _note(self, piece: Any) -> Any:
        self._call.output_began()
        self._pieces.append(piece)
        return piece


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One text is the prompt itself."""
    if len(args) == 1 and not kwargs:
        return args[0]
    return {"args": args, **kwargs} if args else kwargs


def _joined(pieces: list[Any]) -> Any:
    if not pieces:
        return None
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


__all__ = ["Labels", "Measure", "MeasuredAnswer", "MeasuredCall", "current_call"]
