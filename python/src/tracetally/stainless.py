"""Wraps the clients of the OpenAI and Anthropic SDKs, whose methods all send their requests through `client.post`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from .call import Answer, Call, Recorder, begin_call
from .labels import set_labels
from .raw_response import Reading, observe_raw
from .streams import Collector, observe_stream

C = TypeVar("C")

_ORIGIN = "_tracetally_origin"
_RAW_HEADER = "x-stainless-raw-response"
_NOT_GIVEN = ("Omit", "NotGiven")
"""What the SDKs pass on for parameters that the caller left out."""


class Request(NamedTuple):
    """The content of a request, and how its answers are read."""

    model: Any
    prompt: Any
    answer: Callable[[Any], Answer]
    collector: Callable[[], Collector]
    body: Any = None
    """The body to send instead, if the wrapper adds an option."""


ReadRequest = Callable[[Mapping[str, Any], bool], Request]
"""Reads a body; the flag says whether the caller reads the stream of bytes itself."""


class _Origin(NamedTuple):
    """What a wrapped client was made of."""

    client: Any
    recorder: Recorder
    labels: dict[str, Any]


def wrap_client(
    recorder: Recorder, client: C, labels: Mapping[str, Any], routes: Mapping[str, ReadRequest], provider: str
) -> C:
    """
    A copy of the client that records, of the same class and with the same connections. The client itself is not changed.
    Wrapping a wrapped client adds labels and does not record twice.
    """
    origin = client.__dict__.get(_ORIGIN)
    if isinstance(origin, _Origin) and origin.recorder is recorder:
        merged = {**origin.labels, **set_labels(labels)}
        return cast(C, wrap_client(recorder, origin.client, merged, routes, provider))
    scope = _Origin(client, recorder, set_labels(labels))
    copy = object.__new__(type(client))
    copy.__dict__.update(client.__dict__)

    def wrap_again(other: Any) -> Any:
        return wrap_client(recorder, other, labels, routes, provider)

    post = _async_post if inspect.iscoroutinefunction(type(client).post) else _post  # type: ignore[attr-defined]
    changes: dict[str, Any] = {
        _ORIGIN: scope,
        "post": functools.partial(post, scope, routes, provider, client.post),  # type: ignore[attr-defined]
    }
    for name in ("copy", "with_options"):
        method = getattr(client, name, None)
        if method is not None:
            changes[name] = _then(method, wrap_again)
    copy.__dict__.update(changes)
    # Last, because parts take the methods of their client when they are made.
    _bind_parts(client, copy)
    return copy


def _bind_parts(client: Any, copy: Any) -> None:
    """Parts such as `client.chat` keep the client that they were made for."""
    for name, part in client.__dict__.items():
        if getattr(part, "_client", None) is not client:
            continue
        if isinstance(getattr(type(client), name, None), functools.cached_property):
            del copy.__dict__[name]
        else:
            copy.__dict__[name] = type(part)(copy)


def _then(method: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(method(*args, **kwargs))

    return changed


class _Recording:
    """One request that is recorded."""

    def __init__(
        self, call: Call, request: Request, raw: str | None, is_stream: bool, report: Callable[[Exception], None]
    ) -> None:
        self.call = call
        self.request = request
        self._is_stream = is_stream
        self._raw = raw
        self._report = report
        self._reading = Reading(call, request.answer, request.collector, report)
        self._seen: Answer | None = None

    def watch_parser(self, options: dict[str, Any]) -> dict[str, Any]:
        """If the answer does not fit the caller's schema, the call has failed, but its tokens were spent."""
        parser = options.get("post_parser")
        if not callable(parser) or self._raw is not None:
            return options

        def observed(response: Any) -> Any:
            self._seen = self._read(response)
            return parser(response)

        return {**options, "post_parser": observed}

    def take(self, result: Any) -> None:
        try:
            if self._raw is not None:
                observe_raw(result, self._reading, self._is_stream)
            elif hasattr(result, "_iterator"):
                observe_stream(result, self._reading.observer())
            else:
                self.call.end(self._seen or self._read(result))
        except Exception as error:
            self._report(error)
            self.call.end(Answer())

    def fail(self, error: BaseException) -> None:
        self.call.fail(error, self._seen)

    def _read(self, response: Any) -> Answer:
        try:
            return self.request.answer(response)
        except Exception as error:
            self._report(error)
            return Answer()


def _begin(
    scope: _Origin, routes: Mapping[str, ReadRequest], provider: str, path: str, kwargs: dict[str, Any]
) -> _Recording | None:
    try:
        read = routes.get(path.split("?")[0])
        if read is None:
            return None
        options = kwargs.get("options") or {}
        headers: Mapping[str, Any] = options.get("headers") or {}
        raw = next((value for name, value in headers.items() if name.lower() == _RAW_HEADER), None)
        body = kwargs.get("body") or {}
        extra: Any = options.get("extra_json") or {}
        given = {name: value for name, value in {**body, **extra}.items() if type(value).__name__ not in _NOT_GIVEN}
        request = read(given, raw == "stream")
        call = begin_call(
            scope.recorder, model=request.model, prompt=request.prompt, labels=scope.labels, provider=provider
        )
        if call is None:
            return None
        recording = _Recording(call, request, raw, kwargs.get("stream") is True, scope.recorder.report)
        if request.body is not None:
            kwargs["body"] = {**body, **request.body}
        kwargs["options"] = recording.watch_parser(options)
        return recording
    except Exception as error:
        scope.recorder.report(error)
        return None


def _post(
    scope: _Origin,
    routes: Mapping[str, ReadRequest],
    provider: str,
    original: Callable[..., Any],
    path: str,
    **kwargs: Any,
) -> Any:
    recording = _begin(scope, routes, provider, path, kwargs)
    if recording is None:
        return original(path, **kwargs)
    try:
        result = original(path, **kwargs)
    except BaseException as error:
        recording.fail(error)
        raise
    recording.take(result)
    return result


async def _async_post(
    scope: _Origin,
    routes: Mapping[str, ReadRequest],
    provider: str,
    original: Callable[..., Any],
    path: str,
    **kwargs: Any,
) -> Any:
    recording = _begin(scope, routes, provider, path, kwargs)
    if recording is None:
        return await original(path, **kwargs)
    try:
        result = await original(path, **kwargs)
    except BaseException as error:
        recording.fail(error)
        raise
    recording.take(result)
    return result
