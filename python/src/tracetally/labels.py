"""Labels of calls, and those that apply to a block of code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TypedDict, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Labels(TypedDict, total=False):
    """Labels of a call, for the analytics."""

    feature: str | None
    user: str | None
    session: str | None
    """The conversation of the call: `session_id`."""
    run: str | None
    """One run of an agent: `run_id`."""
    provider: str | None
    """The service that runs the model, such as `openai` or `groq`; also used for the price."""


_NO_LABELS: Mapping[str, Any] = {}
_current: ContextVar[Mapping[str, Any]] = ContextVar("tracetally_labels", default=_NO_LABELS)


def current_labels() -> Mapping[str, Any]:
    return _current.get()


def set_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that are None."""
    return {name: label for name, label in labels.items() if label is not None}


def check_labels(labels: Mapping[str, Any]) -> None:
    """A misspelled label would be lost without a word."""
    for name in labels:
        if name not in Labels.__annotations__:
            known = ", ".join(Labels.__annotations__)
            raise TypeError(f"Unknown label {name!r}. The labels are: {known}.")


class LabelScope:
    """Applies labels in a `with` block, to the calls of its thread and of the tasks that begin in it."""

    def __init__(self, labels: Mapping[str, Any]) -> None:
        self._labels = set_labels(labels)
        self._tokens: list[Token[Mapping[str, Any]]] = []

    def __enter__(self) -> None:
        self._tokens.append(_current.set({**_current.get(), **self._labels}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            _current.reset(self._tokens.pop())
        except ValueError:
            # A generator may be closed in another context than it was started in; that context has its own labels.
            pass


def bind(function: F) -> F:
    """The function with the labels that apply now, for threads, which do not inherit them."""
    import inspect

    labels = _current.get()

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def bound_async(*args: Any, **kwargs: Any) -> Any:
            with LabelScope(labels):
                return await function(*args, **kwargs)

        return bound_async  # type: ignore[return-value]

    @functools.wraps(function)
    def bound(*args: Any, **kwargs: Any) -> Any:
        with LabelScope(labels):
            return function(*args, **kwargs)

    return bound  # type: ignore[return-value]
