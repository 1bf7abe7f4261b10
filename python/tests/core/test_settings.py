"""Options are checked, and messages never contain a secret."""

from __future__ import annotations

from typing import Any

import pytest

from tracetally.delivery import pause_seconds
from tracetally.error_type import error_type
from tracetally.settings import read_settings
from tracetally.transport import retry_after

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"key": "x"}, "Unknown TraceTally option 'key'"),
    ({"api_key": "tt secret"}, "must consist of visible ASCII characters"),
    ({"base_url": "ftp://x"}, "must be an HTTP URL"),
    ({"base_url": "http://"}, "must be an HTTP URL"),
    ({"base_url": "http://h:99999999"}, "must be an HTTP URL"),
    ({"base_url": "http://u:p@h"}, "must not contain a user"),
    ({"base_url": "http://h/?q=1"}, "must not contain a user"),
    ({"environment": "a\nb"}, "without control characters"),
    ({"enabled": "yes"}, "must be True or False"),
    ({"sample_rate": 1.5}, 'option "sample_rate" must be a number from 0 to 1, not 1.5'),
    ({"sample_rate": "secret"}, "not a str"),
    ({"sample_rate": float("nan")}, "not nan"),
    ({"max_batch_traces": 0}, "whole number from 1 to 1000, not 0"),
    ({"max_batch_traces": 1.5}, "not 1.5"),
    ({"max_retries": True}, "not a bool"),
    ({"close_timeout_seconds": 0}, "must be a number"),
    ({"mask": "secret"}, "must be a function"),
    ({"on_error": 1}, "must be a function"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")) as raised:
        read_settings(options)
    assert "secret" not in str(raised.value)


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "TRACETALLY_API_KEY": "tt_env",
        "TRACETALLY_URL": "http://h:1/base/",
        "TRACETALLY_ENVIRONMENT": "prod",
        "TRACETALLY_ENABLED": "false",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = read_settings({})
    assert (settings.api_key, settings.base_url, settings.environment) == ("tt_env", "http://h:1/base", "prod")
    assert not settings.enabled
    assert read_settings({"api_key": "other", "enabled": True, "sample_rate": 0}).api_key == "other"
    monkeypatch.setenv("TRACETALLY_ENABLED", "maybe")
    with pytest.raises(ValueError, match="TRACETALLY_ENABLED must be true or false"):
        read_settings({})


def test_delays() -> None:
    settings = read_settings({})
    assert all(0 <= pause_seconds(retries, None, settings) <= 0.2 * 2**retries for retries in range(8))
    assert 5 <= pause_seconds(0, 5.0, settings) <= 5.2
    assert pause_seconds(200, None, settings) <= 30
    assert retry_after("7", 0) == 7
    assert retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 50) == 10
    assert [retry_after(value, 0) for value in (None, "-5", "soon", "")] == [None] * 4


class RateLimitError(Exception):
    status_code = 429


class QuotaError(Exception):
    status_code = 429
    body = {"code": "insufficient_quota", "type": "insufficient_quota"}


class OverloadedError(Exception):
    body = {"type": "error", "error": {"type": "overloaded_error"}}


class APIConnectionError(Exception):
    pass


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimitError(), "rate_limit"),
        (QuotaError(), "insufficient_quota"),
        (OverloadedError(), "overloaded"),
        (APIConnectionError(), "connection"),
        (caused(APIConnectionError(), TimeoutError()), "timeout"),
        (ConnectionResetError(), "connection"),
        (KeyboardInterrupt(), "aborted"),
        (ValueError("x"), None),
        ({"code": "server_error"}, "server_error"),
        ("text", None),
    ],
)
def test_error_types(error: object, kind: str | None) -> None:
    assert error_type(error) == kind
