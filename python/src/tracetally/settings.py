"""The options of the client, checked. The only reader of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypedDict

from .errors import OnError, log_warning
from .text import clean_name

_MIB = 1024 * 1024
_HOUR_SECONDS = 3600.0
_DEFAULT_URL = "http://127.0.0.1:4000"

IDEMPOTENCY_SECONDS = 23 * _HOUR_SECONDS
"""The server keeps an idempotency key for 24 hours. A batch must not be retried after that: it could be stored twice."""


class Options(TypedDict, total=False):
    """Options of `TraceTally`. All of them are optional if the API key is in the environment."""

    api_key: str | None
    """The team's API key. Default: `TRACETALLY_API_KEY`. Without one the client warns once and records nothing."""
    base_url: str | None
    """The server's URL with its base path. Default: `TRACETALLY_URL`, then `http://127.0.0.1:4000`."""
    environment: str | None
    """Where the app runs, such as `production`. Default: `TRACETALLY_ENVIRONMENT`."""
    enabled: bool | None
    """False records nothing, without a warning. Default: `TRACETALLY_ENABLED`, then true."""
    sample_rate: float
    """The share of calls to record, from 0 to 1 (1)."""
    mask: Callable[[str], str] | None
    """Rewrites `input`, `output` and `error_message` before they leave the process. Called on the client's thread."""
    capture_text: bool
    """False sends neither `input` nor `output` (true)."""
    on_error: OnError | None
    """Called with every background problem. Default: a warning of the logger `tracetally`."""
    gzip: bool
    """Compress request bodies over 1 KiB (true)."""
    max_batch_traces: int
    """A batch is sent when it has this many traces (100), …"""
    max_batch_bytes: int
    """… or this many bytes (1 MiB), …"""
    flush_interval_seconds: float
    """… or when its first trace has waited this long (1)."""
    max_queue_traces: int
    """Traces that may be held in memory, including those in flight (10,000). Further ones are dropped and counted."""
    max_queue_bytes: int
    """The same limit in bytes (64 MiB)."""
    max_retries: int
    """How many times `record` is retried (4)."""
    max_retry_age_seconds: float
    """How long a batch is retried before the client gives up on it (300)."""
    retry_delay_seconds: float
    """Upper bound of the first random retry delay (0.2). It doubles with each retry."""
    retry_delay_max_seconds: float
    """The largest upper bound of a retry delay (30)."""
    request_timeout_seconds: float
    """Timeout of one request (10)."""
    close_timeout_seconds: float
    """How long `close()` and the end of the process wait while no batch gets through (1.5)."""


class Settings(NamedTuple):
    api_key: str | None
    base_url: str
    """Without a slash at its end."""
    environment: str | None
    enabled: bool
    sample_rate: float
    mask: Callable[[str], str] | None
    capture_text: bool
    on_error: OnError
    gzip: bool
    max_batch_traces: int
    max_batch_bytes: int
    flush_interval_seconds: float
    max_queue_traces: int
    max_queue_bytes: int
    max_retries: int
    max_retry_age_seconds: float
    retry_delay_seconds: float
    retry_delay_max_seconds: float
    request_timeout_seconds: float
    close_timeout_seconds: float


class _Range(NamedTuple):
    usual: float
    least: float
    most: float


_WHOLE_NUMBERS: Mapping[str, _Range] = {
    "max_batch_traces": _Range(100, 1, 1_000),
    "max_batch_bytes": _Range(_MIB, 1, 20 * _MIB),
    "max_queue_traces": _Range(10_000, 1, 10_000_000),
    "max_queue_bytes": _Range(64 * _MIB, 1, 4_096 * _MIB),
    "max_retries": _Range(4, 0, 100),
}
_SECONDS: Mapping[str, _Range] = {
    "flush_interval_seconds": _Range(1, 0.001, _HOUR_SECONDS),
    "max_retry_age_seconds": _Range(300, 0, 12 * _HOUR_SECONDS),
    "retry_delay_seconds": _Range(0.2, 0.001, _HOUR_SECONDS),
    "retry_delay_max_seconds": _Range(30, 0.001, _HOUR_SECONDS),
    "request_timeout_seconds": _Range(10, 0.001, _HOUR_SECONDS),
    # A process whose server is down must end within two seconds.
    "close_timeout_seconds": _Range(1.5, 0.001, _HOUR_SECONDS),
}


def read_settings(options: Mapping[str, object]) -> Settings:
    names = Options.__annotations__
    for name in options:
        if name not in names:
            raise TypeError(f"Unknown TraceTally option {name!r}. The options are: {', '.join(names)}.")
    numbers: dict[str, object] = {
        **{name: _whole_number(name, rule, options.get(name)) for name, rule in _WHOLE_NUMBERS.items()},
        **{name: _number(name, rule, options.get(name)) for name, rule in _SECONDS.items()},
    }
    others: dict[str, object] = {
        "api_key": _read_key(options.get("api_key")),
        "base_url": _read_url(options.get("base_url")),
        "environment": _read_environment(options.get("environment")),
        "enabled": _read_enabled(options.get("enabled")),
        "sample_rate": _number("sample_rate", _Range(1, 0, 1), options.get("sample_rate")),
        "mask": _function("mask", options.get("mask")),
        "capture_text": _boolean("capture_text", options.get("capture_text", True)),
        "on_error": _function("on_error", options.get("on_error")) or log_warning,
        "gzip": _boolean("gzip", options.get("gzip", True)),
    }
    return Settings(**others, **numbers)  # type: ignore[arg-type]


def _read_key(given: object) -> str | None:
    key = os.environ.get("TRACETALLY_API_KEY", "") if given is None else given
    if key == "":
        return None
    # The message must not contain the key: messages end up in logs.
    if not isinstance(key, str) or re.fullmatch(r"[\x21-\x7e]+", key) is None:
        where = _origin(given, "api_key", "TRACETALLY_API_KEY")
        raise ValueError(
            f"The TraceTally API key ({where}) must consist of visible ASCII characters, without spaces or line breaks."
        )
    return key


def _read_url(given: object) -> str:
    from urllib.parse import urlsplit

    text = (os.environ.get("TRACETALLY_URL") or _DEFAULT_URL) if given is None else given
    where = _origin(given, "base_url", "TRACETALLY_URL")
    if not isinstance(text, str) or not _is_http_url(text):
        raise ValueError(f"The TraceTally URL ({where}) must be an HTTP URL such as {_DEFAULT_URL}.")
    url = urlsplit(text)
    if url.username is not None or url.password is not None or url.query or url.fragment:
        raise ValueError(
            f'The TraceTally URL ({where}) must not contain a user, a password, "?" or "#", only the server and its base path.'
        )
    return f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")


def _is_http_url(text: str) -> bool:
    from urllib.parse import urlsplit

    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.hostname) and text.isascii() and " " not in text


def _read_environment(given: object) -> str | None:
    name = os.environ.get("TRACETALLY_ENVIRONMENT", "") if given is None else given
    if name == "":
        return None
    if not isinstance(name, str) or clean_name(name) != name:
        where = _origin(given, "environment", "TRACETALLY_ENVIRONMENT")
        raise ValueError(
            f"The name of the environment ({where}) must be a string of at most 255 characters, without control characters."
        )
    return name


def _read_enabled(given: object) -> bool:
    if given is not None:
        return _boolean("enabled", given)
    text = os.environ.get("TRACETALLY_ENABLED", "").strip().lower()
    if text in ("", "true", "1"):
        return True
    if text in ("false", "0"):
        return False
    raise ValueError("The environment variable TRACETALLY_ENABLED must be true or false.")


def _origin(given: object, option: str, variable: str) -> str:
    return f"environment variable {variable}" if given is None else f'option "{option}"'


def _whole_number(name: str, rule: _Range, value: object) -> int:
    if value is None:
        return int(rule.usual)
    if not isinstance(value, int) or isinstance(value, bool) or not rule.least <= value <= rule.most:
        raise ValueError(
            f'The option "{name}" must be a whole number from {int(rule.least)} to {int(rule.most)}, not {_shown(value)}.'
        )
    return value


def _number(name: str, rule: _Range, value: object) -> float:
    if value is None:
        return rule.usual
    if isinstance(value, int | float) and not isinstance(value, bool) and rule.least <= value <= rule.most:
        return float(value)
    raise ValueError(f'The option "{name}" must be a number from {rule.least:g} to {rule.most:g}, not {_shown(value)}.')


def _shown(value: object) -> str:
    """Numbers are shown; any other value could be a secret in the wrong place."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else f"a {type(value).__name__}"


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f'The option "{name}" must be True or False.')
    return value


def _function(name: str, value: object) -> object:
    if value is not None and not callable(value):
        raise ValueError(f'The option "{name}" must be a function.')
    return value
