"""Values of the caller as the server accepts them. Nothing here raises, whatever the value is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any

TEXT_CHARS_MAX = 800_000
"""The server accepts traces of up to 5 MiB. A trace with cut text is better than a rejected one."""
ERROR_CHARS_MAX = 10_000
_NAME_CHARS_MAX = 255
_COUNT_MAX = 2**31 - 1
_USD_MAX = 1_000_000
_CAUSES_MAX = 5
_DEPTH_MAX = 20
_NODES_MAX = 20_000
_CONTROL_CHARACTERS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")


def field(value: Any, name: str) -> Any:
    """A field of an object of an SDK or of its JSON; None if it has none."""
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def items(value: Any) -> Iterable[Any]:
    """The items of a list; nothing if it is none, because some providers send null for an empty list."""
    return value if isinstance(value, list | tuple) else ()


def as_text(value: Any) -> str | None:
    """Strings unchanged, everything else as JSON; None for None."""
    if value is None:
        return None
    return clip(value if _is_a(value, str) else _to_json(value), TEXT_CHARS_MAX)


def _is_a(value: object, kind: type | UnionType) -> bool:
    """`isinstance` asks the object, which may raise."""
    return issubclass(type(value), kind)


def clip(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}… [truncated, {len(text)} characters in total]"


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except Exception:  # Cycles, very deep objects, keys that are no strings, objects whose methods raise.
        pass
    try:
        return json.dumps(_Bounded().copy(value, 0), ensure_ascii=False, separators=(",", ":"))
    except Exception:
        return f"[{type(value).__name__}]"


def _plain(value: Any) -> Any:
    """What stands in JSON for an object that has no JSON of its own."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, BaseException):
        return error_text(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    fields = getattr(value, "__dataclass_fields__", None)
    if isinstance(fields, dict) and not isinstance(value, type):
        return {name: getattr(value, name, None) for name in fields}
    # Dates, UUIDs, decimals, paths and enum members say what they are; the text of other objects may be anything.
    if type(value).__module__.split(".")[0] in ("datetime", "uuid", "decimal", "pathlib", "enum", "fractions"):
        return str(value)
    return f"[{type(value).__name__}]"


class _Bounded:
    """Copies values of any shape, down to a depth and up to a number of values."""

    def __init__(self) -> None:
        self._nodes = 0

    def copy(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > _NODES_MAX:
            return "[…]"
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if depth >= _DEPTH_MAX:
            return f"[{type(value).__name__}]"
        if isinstance(value, dict):
            return {str(name): self.copy(each, depth + 1) for name, each in self._some(value.items())}
        if isinstance(value, list | tuple):
            return [self.copy(each, depth + 1) for each in self._some(value)]
        try:
            return self.copy(_plain(value), depth + 1)
        except Exception:
            return f"[{type(value).__name__}]"

    def _some(self, values: Iterable[Any]) -> Iterable[Any]:
        for each in values:
            if self._nodes > _NODES_MAX:
                return
            yield each


def causes_of(error: BaseException) -> list[BaseException]:
    """The error and its causes. Only stated causes: an error that was being handled may have nothing to do with it."""
    causes: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in causes and len(causes) < _CAUSES_MAX:
        causes.append(at)
        at = at.__cause__
    return causes


def error_text(error: object) -> str:
    """The messages of the error and its causes, because SDKs often say only "Connection error." Never empty."""
    if not isinstance(error, BaseException):
        message = field(error, "message") or field(error, "code") or as_text(error)
        return clip(str(message), ERROR_CHARS_MAX) or "unknown error"
    texts: list[str] = []
    for cause in causes_of(error):
        text = _message_of(cause)
        if text not in texts:
            texts.append(text)
    why = f" (cause: {', '.join(texts[1:])})" if len(texts) > 1 else ""
    return clip(f"{texts[0]}{why}", ERROR_CHARS_MAX)


def _message_of(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def clean_name(value: object) -> str | None:
    """A model or label as the server accepts it: 1 to 255 characters without control characters; otherwise None."""
    if not _is_a(value, str):
        return None
    return str(value).translate(_CONTROL_CHARACTERS)[:_NAME_CHARS_MAX] or None


def clean_count(value: object) -> int | None:
    """A count as the server accepts it; otherwise None."""
    if not _is_a(value, int | float) or value is True or value is False:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        return None
    return value if 0 <= value <= _COUNT_MAX else None


def clean_parts(whole: int | None, parts: Mapping[str, object]) -> dict[str, int | None]:
    """The parts of a count, unless they are more than the count: the server would reject the trace."""
    counts = {name: clean_count(part) for name, part in parts.items()}
    total = sum(count or 0 for count in counts.values())
    return {} if whole is not None and total > whole else counts


def clean_usd(value: object) -> float | None:
    """A cost as the server accepts it; otherwise None."""
    try:
        usd = float(value)  # type: ignore[arg-type]
    except Exception:
        return None
    return usd if not _is_a(value, bool | str) and 0 <= usd <= _USD_MAX else None
