"""A provider on this computer that speaks the protocols of OpenAI, Anthropic and Google. What the user says decides what it answers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

OPENAI_USAGE: Json = {
    "prompt_tokens": 1200,
    "completion_tokens": 30,
    "total_tokens": 1230,
    "prompt_tokens_details": {"cached_tokens": 1000, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 12, "audio_tokens": 0},
}
RESPONSES_USAGE: Json = {
    "input_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 0},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 1230,
}
ANTHROPIC_USAGE: Json = {
    "input_tokens": 200,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
    "output_tokens": 30,
    "output_tokens_details": {"thinking_tokens": 12},
    "service_tier": "standard",
}
GOOGLE_USAGE: Json = {
    "promptTokenCount": 1200,
    "cachedContentTokenCount": 1000,
    "candidatesTokenCount": 18,
    "thoughtsTokenCount": 12,
    "totalTokenCount": 1230,
}
TOOL_PIECES = ('{"ci', 'ty":"Par', 'is"}')
WORDS = ("Hel", "lo", " there", ".")
ANTHROPIC_ERRORS = {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
GOOGLE_ERRORS = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


class FakeProvider:
    """Runs until `stop`. `url` is its address without a path."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> FakeProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Cut(Exception):
    """The connection ends in the middle of the reply."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Always the same, so that two replies can be compared."""
        return "Thu, 01 Jan 2026 00:00:00 GMT"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body: Json = json.loads(self.rfile.read(length) or b"{}")
        said = _last_text(body)
        try:
            self._answer(self.path, body, said)
        except (_Cut, BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self, path: str, body: Json, said: str) -> None:
        if "stall" in said:
            time.sleep(30)
        if "wait" in said:
            time.sleep(0.2)
        failure = re.search(r"fail with (\d+)", said)
        status = int(failure[1]) if failure else None
        if "/messages" in path or "/model/" in path or ":rawPredict" in path or ":streamRawPredict" in path:
            self._anthropic(body, said, status)
        elif "/embeddings" in path:
            data = [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}]
            usage = {"prompt_tokens": 8, "total_tokens": 8}
            self._json(200, {"object": "list", "data": data, "model": body["model"], "usage": usage})
        elif "/responses" in path:
            self._responses(body, said, status)
        elif "Content" in path or path.endswith(":predict"):
            self._google(path, said, status)
        else:
            self._chat(body, said, status)

    # --- OpenAI ---

    def _openai_failure(self, status: int) -> None:
        kind = "rate_limit_error" if status == 429 else "invalid_request_error"
        error = {"message": f"The fake fails with {status}.", "type": kind, "param": None, "code": None}
        self._json(status, {"error": error}, {"x-should-retry": "false"})

    def _chat(self, body: Json, said: str, status: int | None) -> None:
        if status is not None:
            return self._openai_failure(status)
        model = _answering(body)
        wants_tool = "weather" in said and not _has_tool_result(body)
        if body.get("stream"):
            return self._events(({"data": chunk} for chunk in _chat_chunks(body, said, wants_tool, model)), done=True)
        text = '{"answer":4}' if "json" in said else "Hello there."
        call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "".join(TOOL_PIECES)}}
        message: Json = {"role": "assistant", "content": None if wants_tool else text, "refusal": None}
        if wants_tool:
            message["tool_calls"] = [call]
        finish = "tool_calls" if wants_tool else "stop"
        choices = [
            {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
            for index in range(body.get("n") or 1)
        ]
        whole: Json = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": None if "null choices" in said else choices,
            "usage": OPENAI_USAGE,
            "service_tier": "default",
        }
        return self._json(200, whole)

    def _responses(self, body: Json, said: str, status: int | None) -> None:
        if status is not None:
            return self._openai_failure(status)
        text = '{"answer":4}' if "json" in said else "Hello there."
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        if "weather" in said:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}"}
        error = {"code": "server_error", "message": "The fake broke."} if "break" in said else None

        def response(state: str, **more: Any) -> Json:
            return {
                "id": "resp_1",
                "object": "response",
                "created_at": 1_700_000_000,
                "model": _answering(body),
                "status": state,
                "error": None,
                "output": [],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                **more,
            }

        end = response("failed" if error else "completed", output=[item], usage=RESPONSES_USAGE, error=error)
        if not body.get("stream"):
            return self._json(200, end)
        place = {"output_index": 0, "item_id": "msg_1"}
        deltas = [
            {"type": "response.output_text.delta", "content_index": 0, "delta": word, "logprobs": [], **place}
            for word in (WORDS if item["type"] == "message" else ())
        ]
        events: list[Json] = [
            {"type": "response.created", "response": response("in_progress")},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
            {"type": "response.content_part.added", "content_index": 0, "part": {**part, "text": ""}, **place},
            *deltas,
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.failed" if error else "response.completed", "response": end},
        ]
        numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
        return self._events({"event": event["type"], "data": event} for event in numbered)

    # --- Anthropic ---

    def _anthropic(self, body: Json, said: str, status: int | None) -> None:
        if status is not None:
            error = {"type": ANTHROPIC_ERRORS.get(status, "api_error"), "message": f"The fake fails with {status}."}
            return self._json(status, {"type": "error", "error": error}, {"x-should-retry": "false"})
        wants_tool = "weather" in said and not _has_tool_result(body)
        text = '{"answer":4}' if "json" in said else "Hello there."
        start: Json = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": _answering(body),
            "stop_sequence": None,
        }
        reason = "tool_use" if wants_tool else "end_turn"
        block = {"type": "text", "text": "I will look." if wants_tool else text, "citations": None}
        tool = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": json.loads("".join(TOOL_PIECES))}
        if body.get("stream"):
            events = _message_events(start, said, wants_tool, reason)
            return self._events({"event": event["type"], "data": event} for event in events)
        content = [block, tool] if wants_tool else [block]
        return self._json(200, {**start, "content": content, "stop_reason": reason, "usage": ANTHROPIC_USAGE})

    # --- Google ---

    def _google(self, path: str, said: str, status: int | None) -> None:
        if status is not None:
            error = {"code": status, "message": f"The fake fails with {status}.", "status": GOOGLE_ERRORS.get(status)}
            return self._json(status, {"error": error})
        match = re.search(r"models/([^:]+):", path)
        model = f"{match[1] if match else 'gemini'}-001"
        if "mbedContent" in path:
            return self._json(200, {"embeddings": [{"values": [0.1, 0.2]}], "embedding": {"values": [0.1, 0.2]}})

        def reply(parts: list[Json], **more: Any) -> Json:
            content = {"role": "model", "parts": parts}
            candidate = {"content": content, "index": 0, **({"finishReason": "STOP"} if more else {})}
            return {"candidates": [candidate], "modelVersion": model, "responseId": "resp-g1", **more}

        call = {"functionCall": {"name": "weather", "args": {"city": "Paris"}}}
        is_call = "weather" in said and "functionResponse" not in said
        text = '{"answer":4}' if "json" in said else "Hello there."
        if "stream" in path:
            pieces: list[Json] = [call] if is_call else [{"text": word} for word in WORDS]
            chunks = [reply([piece]) for piece in pieces[:-1]]
            chunks.append(reply([pieces[-1]], usageMetadata=GOOGLE_USAGE))
            return self._events({"data": chunk} for chunk in _with_accidents(chunks, said))
        if "blocked" in said:
            blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": model}
            return self._json(200, {**blocked, "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}})
        return self._json(200, reply([call if is_call else {"text": text}], usageMetadata=GOOGLE_USAGE))

    # --- Replies ---

    def _json(self, status: int, body: Json, headers: Json | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "content-type": "application/json", "content-length": len(data)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def _events(self, events: Iterable[Json], *, done: bool = False) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            name = f"event: {event['event']}\n" if "event" in event else ""
            self._piece(f"{name}data: {json.dumps(event['data'])}\n\n")
        if done:
            self._piece("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _piece(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _answering(body: Json) -> str:
    """The exact model, as providers name it."""
    model = str(body.get("model", "claude-sonnet-4-5"))
    return f"{model}-2024-08-06" if model == "gpt-4o" else model


def _last_text(body: Json) -> str:
    messages = body.get("messages") or body.get("contents") or body.get("input") or ""
    return json.dumps(messages[-1] if isinstance(messages, list) and messages else messages)


def _has_tool_result(body: Json) -> bool:
    last = (body.get("messages") or [{}])[-1]
    return last.get("role") == "tool" or "tool_result" in json.dumps(last)


def _with_accidents(chunks: Iterable[Json], said: str) -> Iterable[Json]:
    """What goes wrong in streams, if the user asked for it."""
    for number, chunk in enumerate(chunks):
        if number == 3 and "cut" in said:
            raise _Cut
        if number == 2 and "slow" in said:
            time.sleep(30)
        yield chunk


def _chat_chunks(body: Json, said: str, wants_tool: bool, model: str) -> Iterable[Json]:
    has_usage = (body.get("stream_options") or {}).get("include_usage") is True

    def chunk(choices: Any, **more: Any) -> Json:
        usage = {"usage": None} if has_usage else {}
        start = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}
        return {**start, "choices": choices, **usage, **more}

    def piece(delta: Json | None, finish: str | None = None) -> Json:
        choice: Json = {"index": 0, "logprobs": None, "finish_reason": finish}
        return chunk([choice if delta is None else {**choice, "delta": delta}])

    def chunks() -> Iterable[Json]:
        if "azure" in said:
            # Azure begins with the result of its content filter, and may send choices without a delta.
            yield {**chunk([]), "id": "", "model": "", "prompt_filter_results": []}
            yield piece(None)
            yield chunk(None)
        yield piece({"role": "assistant", "content": None if wants_tool else "", "refusal": None})
        if wants_tool:
            function = {"name": "weather", "arguments": ""}
            yield piece({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
            for part in TOOL_PIECES:
                yield piece({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        else:
            for word in ('{"answer"', ":4}") if "json" in said else WORDS:
                yield piece({"content": word})
        yield piece({}, "tool_calls" if wants_tool else "stop")
        if has_usage:
            yield chunk([], usage=OPENAI_USAGE)

    return _with_accidents(chunks(), said)


def _message_events(start: Json, said: str, wants_tool: bool, reason: str) -> Iterable[Json]:
    words = ("I will ", "look.") if wants_tool else ('{"answer"', ":4}") if "json" in said else WORDS
    begin = {**start, "content": [], "stop_reason": None, "usage": {**ANTHROPIC_USAGE, "output_tokens": 1}}
    events: list[Json] = [
        {"type": "message_start", "message": begin},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words),
        {"type": "content_block_stop", "index": 0},
    ]
    if wants_tool:
        tool = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
        events.append({"type": "content_block_start", "index": 1, "content_block": tool})
        for part in TOOL_PIECES:
            delta = {"type": "input_json_delta", "partial_json": part}
            events.append({"type": "content_block_delta", "index": 1, "delta": delta})
        events.append({"type": "content_block_stop", "index": 1})
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 30},
    }
    return _with_accidents([*events, end, {"type": "message_stop"}], said)


if __name__ == "__main__":
    provider = FakeProvider()
    print(provider.url, flush=True)
    threading.Event().wait()
