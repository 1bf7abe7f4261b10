"""What kind of failure an error is, in the same words for every provider."""

from __future__ import annotations

import re
from typing import Any

from .text import causes_of, clean_name, field

_BY_STATUS = {
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    413: "request_too_large",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_SPECIFIC = ("insufficient_quota", "context_length_exceeded", "content_filter")
"""Codes that say more than the status."""
_OTHER_WORDS = {"rate_limit_exceeded": "rate_limit", "api_error": "server_error", "server_error": "server_error"}
"""Words of single providers for what others call differently."""
_SAY_NOTHING = ("error",)
_WORD = re.compile(r"[a-z][a-z_]*")


def error_type(error: object) -> str | None:
    """Such as `rate_limit`, `timeout`, `connection` or `overloaded`; None if neither the provider nor the SDK says."""
    causes: list[object] = list(causes_of(error)) if isinstance(error, BaseException) else [error]
    for kind_of in (_interruption, _provider_kind, _connection):
        for cause in causes:
            kind = kind_of(cause)
            if kind is not None:
                return kind
    return None


def _interruption(error: object) -> str | None:
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "timeout" in name.lower() or "timedout" in name.lower():
        return "timeout"
    is_abort = isinstance(error, KeyboardInterrupt | GeneratorExit) or name in ("CancelledError", "Cancelled")
    return "aborted" if is_abort or "abort" in name.lower() else None


def _provider_kind(error: object) -> str | None:
    said = [word for part in _described(error) for word in (field(part, "code"), field(part, "type"))]
    words = [word for word in said if isinstance(word, str) and _WORD.fullmatch(word)]
    for word in words:
        if word in _SPECIFIC:
            return word
    status = _status_of(error)
    if status is not None:
        return _BY_STATUS.get(status) or ("server_error" if status >= 500 else "invalid_request")
    for word in words:
        if word not in _SAY_NOTHING:
            return _OTHER_WORDS.get(word) or clean_name(word.removesuffix("_error"))
    return None


def _described(error: object) -> list[Any]:
    """The error and the body of the failed reply, as the SDKs keep it: at most an error in an error."""
    body = field(error, "body")
    if body is None:
        body = field(error, "error")
    return [error, field(body, "error"), body]


def _status_of(error: object) -> int | None:
    for name in ("status_code", "status", "code"):
        status = field(error, name)
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def _connection(error: object) -> str | None:
    if isinstance(error, ConnectionError | OSError) and not isinstance(error, FileNotFoundError | PermissionError):
        return "connection"
    return "connection" if re.search("connect|network|protocolerror", type(error).__name__, re.I) else None
