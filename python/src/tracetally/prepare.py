"""Turns a trace into the JSON to send. No text leaves the process without passing here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from .call import Trace, time_text
from .errors import Reporter, TraceTallyError
from .settings import Settings
from .text import as_text

_TEXTS = ("input", "output", "error_message")
_MASK_FAILED = "[mask failed]"


def trace_of(fields: dict[str, Any]) -> Trace:
    """What a caller passed, as it is now: later changes to the objects have no effect."""
    trace = {name: value for name, value in fields.items() if value is not None}
    for name in _TEXTS:
        if name in trace:
            trace[name] = as_text(trace[name])
    started = trace.get("started_at")
    if started is not None and hasattr(started, "timestamp"):
        # A time without a zone is one of the computer's zone, as everywhere in Python.
        trace["started_at"] = time_text(started.timestamp())
    if isinstance(trace.get("metadata"), Mapping):
        trace["metadata"] = dict(trace["metadata"])
    return trace


def preparer(settings: Settings, reporter: Reporter) -> Callable[[Trace], bytes]:
    """Applies the options `environment`, `mask` and `capture_text`."""
    environment, mask, capture_text = settings.environment, settings.mask, settings.capture_text

    def prepare(trace: Trace) -> bytes:
        sent = dict(trace)
        if environment is not None and sent.get("environment") is None:
            sent["environment"] = environment
        if not capture_text:
            sent.pop("input", None)
            sent.pop("output", None)
        if mask is not None:
            for name in _TEXTS:
                if isinstance(sent.get(name), str):
                    sent[name] = _masked(mask, sent[name], reporter)
        return to_json(sent)

    return prepare


def _masked(mask: Callable[[str], Any], text: str, reporter: Reporter) -> str:
    try:
        masked = mask(text)
        if isinstance(masked, str):
            return masked
        # An asynchronous mask would otherwise cause a warning for each text.
        close = getattr(masked, "close", None)
        if callable(close):
            close()
    except Exception:  # Not reported with the error: its message may quote the text.
        pass
    detail = (
        f'The option "mask" raised an error or did not return a string. The text was replaced by "{_MASK_FAILED}"; '
        "further failures are not reported."
    )
    reporter.report_once(TraceTallyError(detail, code="mask_failed"))
    return _MASK_FAILED


def to_json(trace: Trace) -> bytes:
    try:
        # NaN and infinity are no JSON. A cost that is one is left out, like every cost that the server would reject.
        cost = trace.get("cost_usd")
        if isinstance(cost, float) and not math.isfinite(cost):
            trace = {name: value for name, value in trace.items() if name != "cost_usd"}
        return json.dumps(trace, allow_nan=False, separators=(",", ":"), default=_number_or_text).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"A trace must consist of values that can be converted to JSON ({type(error).__name__})."
        raise TraceTallyError(detail, code="not_serialisable") from None


def _number_or_text(value: Any) -> Any:
    """Numbers of libraries, such as those of NumPy and `Decimal`, are numbers; other objects have no JSON."""
    if hasattr(value, "__index__"):
        return int(value)
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError
