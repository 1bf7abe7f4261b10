"""Wraps the client of the Google Gen AI SDK, whose methods all send their requests through one API client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from .call import Answer, Call, Recorder, Usage, begin_call
from .labels import set_labels
from .streams import ObservedAsyncIterator, ObservedIterator, Observer
from .text import as_text, field, items

C = TypeVar("C")

_ORIGIN = "_tracetally_origin"
_PATH = re.compile(
    r"(?:^|/)(?:models|tunedModels|endpoints)/([^:]+):(generateContent|streamGenerateContent|embedContent|predict|batchEmbedContents)"
)
_EMBEDDINGS = ("embedContent", "predict", "batchEmbedContents")
_classes: dict[type[Any], type[Any]] = {}


def wrap_google_genai(recorder: Recorder, client: C, labels: Mapping[str, Any]) -> C:
    """
    A copy of the client that records, with the same connections. The client itself is not changed. Wrapping a wrapped
    client adds labels and does not record twice.
    """
    origin = client.__dict__.get(_ORIGIN)
    if origin is not None and origin[1] is recorder:
        merged = {**origin[2], **set_labels(labels)}
        return cast(C, wrap_google_genai(recorder, origin[0], merged))
    api_client = cast(Any, client)._api_client
    api_copy = _copy(api_client)
    api_copy.__dict__.update(_requests(recorder, api_client, set_labels(labels)))
    copy = _copy_with(client, api_client, api_copy)
    copy.__dict__[_ORIGIN] = (client, recorder, set_labels(labels))
    return copy


def _copy_with(owner: C, api_client: Any, api_copy: Any) -> C:
    """The object and its parts, such as `client.models` and `client.aio`, with the other API client."""
    copy = _copy(owner)
    for name, part in copy.__dict__.items():
        if part is api_client:
            copy.__dict__[name] = api_copy
        elif getattr(part, "_api_client", None) is api_client:
            copy.__dict__[name] = _copy_with(part, api_client, api_copy)
    return copy


def _copy(original: C) -> C:
    kind = type(original)
    if kind not in _classes:
        # The original's finalizer closes the connections, which the copy must not do when it is forgotten.
        body = {"__del__": lambda self: None, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
        _classes[kind] = type(kind.__name__, (kind,), body) if hasattr(kind, "__del__") else kind
    copy = object.__new__(_classes[kind])
    copy.__dict__.update(original.__dict__)
    return cast(C, copy)


def _requests(recorder: Recorder, api_client: Any, labels: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    provider = "gcp.vertex_ai" if getattr(api_client, "vertexai", False) else "gcp.gemini"

    def begin(path: str, request: Any) -> Call | None:
        try:
            match = _PATH.search(path)
            if match is None:
                return None
            prompt = _prompt_of(request, match[2] in _EMBEDDINGS)
            return begin_call(recorder, model=match[1], prompt=prompt, labels=labels, provider=provider)
        except Exception as error:
            recorder.report(error)
            return None

    def end(call: Call, response: Any) -> None:
        text = field(response, "body") or ""
        call.end_later(lambda: _answer(json.loads(text)), len(text))

    def request(http_method: str, path: str, request_dict: Any, *args: Any, **kwargs: Any) -> Any:
        call = begin(path, request_dict)
        try:
            response = api_client.request(http_method, path, request_dict, *args, **kwargs)
        except BaseException as error:
            if call is not None:
                call.fail(error)
            raise
        if call is not None:
            end(call, response)
        return response

    async def async_request(http_method: str, path: str, request_dict: Any, *args: Any, **kwargs: Any) -> Any:
        call = begin(path, request_dict)
        try:
            response = await api_client.async_request(http_method, path, request_dict, *args, **kwargs)
        except BaseException as error:
            if call is not None:
                call.fail(error)
            raise
        if call is not None:
            end(call, response)
        return response

    def request_streamed(http_method: str, path: str, request_dict: Any, *args: Any, **kwargs: Any) -> Any:
        call = begin(path, request_dict)
        stream = api_client.request_streamed(http_method, path, request_dict, *args, **kwargs)
        return stream if call is None else ObservedIterator(stream, Observer(call, _ChunkCollector(), recorder.report))

    async def async_request_streamed(http_method: str, path: str, request_dict: Any, *args: Any, **kwargs: Any) -> Any:
        call = begin(path, request_dict)
        try:
            stream = await api_client.async_request_streamed(http_method, path, request_dict, *args, **kwargs)
        except BaseException as error:
            if call is not None:
                call.fail(error)
            raise
        if call is None:
            return stream
        return ObservedAsyncIterator(stream, Observer(call, _ChunkCollector(), recorder.report))

    return {
        "request": request,
        "async_request": async_request,
        "request_streamed": request_streamed,
        "async_request_streamed": async_request_streamed,
    }


def _prompt_of(request: Any, is_embedding: bool) -> str | None:
    if is_embedding:
        named = (field(request, name) for name in ("requests", "instances", "content"))
        return as_text(next((value for value in named if value is not None), None))
    contents, system = field(request, "contents"), field(request, "systemInstruction")
    return as_text(contents if system is None else {"systemInstruction": system, "contents": contents})


def _answer(response: Any) -> Answer:
    contents = [field(candidate, "content") for candidate in items(field(response, "candidates"))]
    return _answer_of([list(items(field(content, "parts"))) for content in contents], response)


def _answer_of(candidates: list[list[Any]], response: Any) -> Answer:
    outputs = [_output_of(parts) for parts in candidates]
    blocked = field(field(response, "promptFeedback"), "blockReason")
    return Answer(
        output=outputs if len(outputs) > 1 else outputs[0] if outputs else None,
        usage=_usage_of(field(response, "usageMetadata")),
        response_model=field(response, "modelVersion"),
        response_id=field(response, "responseId"),
        error=f"The prompt was blocked ({blocked})." if blocked and not outputs else None,
    )


def _output_of(parts: list[Any]) -> Any:
    """Plain text if the answer is text only; JSON if it contains function calls."""
    said = [part for part in parts if not field(part, "thought")]
    if any(field(part, "text") is None for part in said):
        return [_without_data(part) for part in said]
    return "".join(field(part, "text") for part in said) if said else None


def _without_data(part: Any) -> Any:
    """Images and sound are recorded by their type and size."""
    data = field(part, "inlineData")
    if data is None:
        return {name: value for name, value in part.items() if name != "thoughtSignature"}
    size = len(field(data, "data") or "") * 3 // 4
    return {"inlineData": f"[{field(data, 'mimeType')}, about {size} bytes]"}


def _usage_of(counts: Any) -> Usage | None:
    """Thoughts are not part of the candidates' tokens, and results of tools are not part of the prompt's."""
    if counts is None:
        return None
    prompt, tools = field(counts, "promptTokenCount"), field(counts, "toolUsePromptTokenCount")
    candidates, thoughts = field(counts, "candidatesTokenCount"), field(counts, "thoughtsTokenCount")
    return Usage(
        input_tokens=_sum(prompt, tools),
        output_tokens=_sum(candidates, thoughts),
        cache_read_tokens=field(counts, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )


def _sum(first: Any, second: Any) -> Any:
    return None if first is None and second is None else (first or 0) + (second or 0)


class _ChunkCollector:
    def __init__(self) -> None:
        self._parts: dict[int, list[Any]] = {}
        self._last: dict[str, Any] = {}
        self._has_output = False

    def see(self, item: Any) -> bool:
        chunk = json.loads(field(item, "body") or "{}")
        for name in ("usageMetadata", "modelVersion", "responseId", "promptFeedback"):
            if chunk.get(name) is not None:
                self._last[name] = chunk[name]
        for position, candidate in enumerate(items(chunk.get("candidates"))):
            parts = list(items(field(field(candidate, "content"), "parts")))
            index = field(candidate, "index")
            self._parts.setdefault(position if index is None else index, []).extend(parts)
            self._has_output = self._has_output or len(parts) > 0
        return True

    def has_output(self) -> bool:
        return self._has_output

    def answer(self) -> Answer:
        return _answer_of([parts for _, parts in sorted(self._parts.items())], self._last)
