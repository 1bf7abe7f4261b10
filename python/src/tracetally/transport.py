"""Requests to the server, with the standard library."""

from __future__ import annotations

import contextlib
import email.utils
import gzip
import http.client
import json
import socket
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .errors import FieldError, TraceTallyError
from .settings import Settings

_PACK_BYTES_MIN = 1024
"""A smaller body fits into one packet, so compression saves nothing."""
_REPLY_BYTES_MAX = 4 * 1024 * 1024
"""More than the server adds to a write: ids and times of 1,000 traces, or why each was rejected."""
_IDLE_SECONDS_MAX = 3.0
"""Servers close idle connections, usually after five seconds or more."""
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
_TEMPORARY_CODES = frozenset({"network_error", "no_reply", "bad_reply"})


class Body(NamedTuple):
    """A request body that can be sent any number of times."""

    data: bytes
    is_packed: bool
    plain_bytes: int


def may_pass(error: TraceTallyError) -> bool:
    """Whether the same request may succeed later. Requests are safe to repeat: they have an idempotency key."""
    return error.code in _TEMPORARY_CODES or error.status in _TEMPORARY


class Transport:
    """A connection to the server that stays open between requests. Used by one thread at a time; `cut` by any."""

    def __init__(self, settings: Settings) -> None:
        url = urlsplit(settings.base_url)
        self._settings = settings
        self._host = url.hostname or ""
        self._port = url.port
        self._is_tls = url.scheme == "https"
        self._path = url.path
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def pack(self, data: bytes) -> Body:
        """Compresses once for all attempts."""
        if not self._settings.gzip or len(data) <= _PACK_BYTES_MIN:
            return Body(data, False, len(data))
        return Body(gzip.compress(data, 3), True, len(data))

    def post(self, path: str, body: Body, idempotency_key: str, timeout: float | None = None) -> dict[str, Any]:
        """One request; the JSON object of its reply. Every failure is a TraceTallyError."""
        seconds = timeout or self._settings.request_timeout_seconds
        headers = {
            "authorization": f"Bearer {self._settings.api_key}",
            "accept": "application/json",
            "content-type": "application/json",
            "idempotency-key": idempotency_key,
        }
        if body.is_packed:
            headers["content-encoding"] = "gzip"
        try:
            status, reply_headers, data = self._exchange(path, body, headers, seconds)
        except TimeoutError:
            self.drop()
            raise TraceTallyError(
                f"The server did not send a complete reply within {seconds:g} s.", code="no_reply"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            self.drop()
            raise TraceTallyError(
                f"The server could not be reached, or the connection was lost ({_reason(error)}).", code="network_error"
            ) from None
        except BaseException:
            self.drop()
            raise
        return _reply_of(status, reply_headers, data)

    def _exchange(
        self, path: str, body: Body, headers: Mapping[str, str], seconds: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        deadline = time.monotonic() + seconds
        is_reused = self._connection is not None and time.monotonic() - self._used_at < _IDLE_SECONDS_MAX
        if not is_reused:
            self.drop()
        try:
            return self._send(path, body, headers, deadline)
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):
            # The server may have closed the connection just before the request.
            if not is_reused:
                raise
            self.drop()
            return self._send(path, body, headers, deadline)

    def _send(
        self, path: str, body: Body, headers: Mapping[str, str], deadline: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = self._connect(deadline)
        connection.request("POST", f"{self._path}{path}", body.data, dict(headers))
        _limit_wait(connection, deadline)
        reply = connection.getresponse()
        data = _read(connection, reply, body.plain_bytes + _REPLY_BYTES_MAX, deadline)
        self._used_at = time.monotonic()
        if reply.will_close:
            self.drop()
        return reply.status, reply.headers, data

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
            self._connection = kind(self._host, self._port)
        self._connection.timeout = max(0.001, deadline - time.monotonic())
        if self._connection.sock is None:
            self._connection.connect()
        _limit_wait(self._connection, deadline)
        return self._connection

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def cut(self) -> None:
        """Ends a request in another thread."""
        sock = getattr(self._connection, "sock", None)
        if sock is not None:
            with contextlib.suppress(Exception):
                sock.shutdown(socket.SHUT_RDWR)


def _limit_wait(connection: http.client.HTTPConnection, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)


def _read(
    connection: http.client.HTTPConnection, reply: http.client.HTTPResponse, bytes_max: int, deadline: float
) -> bytes:
    """A server that sends a byte now and then must not hold the thread forever."""
    pieces: list[bytes] = []
    size = 0
    while True:
        _limit_wait(connection, deadline)
        piece = reply.read1(65_536)
        if not piece:
            # Otherwise the connection could not be used again: `read1` does not notice the end.
            reply.close()
            return b"".join(pieces)
        size += len(piece)
        if size > bytes_max:
            raise TraceTallyError(
                f"The reply is larger than {bytes_max} bytes and was not read to its end.",
                code="reply_too_large",
                status=reply.status,
            )
        pieces.append(piece)


def _reply_of(status: int, headers: http.client.HTTPMessage, data: bytes) -> dict[str, Any]:
    if 300 <= status < 400:
        raise TraceTallyError(
            "The server redirects requests. Set base_url to the final address.", code="redirected", status=status
        )
    reply = _object_in(data)
    if 200 <= status < 300:
        if reply is None:
            raise bad_reply(status)
        return reply
    problem = reply or {}
    code, detail = problem.get("code"), problem.get("detail")
    raise TraceTallyError(
        detail if isinstance(detail, str) else f"The server replied with status {status}.",
        code=code if isinstance(code, str) else f"http_{status}",
        status=status,
        errors=_field_errors(problem.get("errors")),
        request_id=headers.get("x-request-id"),
        retry_after_seconds=retry_after(headers.get("retry-after"), time.time()),
    )


def bad_reply(status: int) -> TraceTallyError:
    return TraceTallyError(
        "The reply did not come from TraceTally. Check that base_url is the address of a TraceTally server.",
        code="bad_reply",
        status=status,
    )


def _object_in(data: bytes) -> dict[str, Any] | None:
    try:
        reply: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None


def _field_errors(value: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    if isinstance(value, list):
        for each in value:
            match each:
                case {"field": str(name), "message": str(message)}:
                    errors.append({"field": name, "message": message})
                case _:
                    pass
    return errors


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds from now until the time in a `Retry-After` header, which has seconds or a date."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
