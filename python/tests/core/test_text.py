"""Values of the caller become text and counts that the server accepts, whatever they are."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from support import Recorded, has
from tracetally import TraceTally
from tracetally.text import as_text, clean_count, clean_name, clean_parts, clean_usd, error_text


@dataclass
class Point:
    x: int


class Hostile:
    """Everything that can be asked of it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


class HostileText:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def deep(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


CYCLE: dict[str, Any] = {"a": 1}
CYCLE["self"] = CYCLE

TEXTS: list[tuple[Any, str | None]] = [
    (None, None),
    ("text", "text"),
    ("", ""),
    ({"ä": [1, None, True]}, '{"ä":[1,null,true]}'),
    ([b"abc", bytearray(2), memoryview(b"x")], '["[3 bytes]","[2 bytes]","[1 bytes]"]'),
    ({"p": Point(1)}, '{"p":{"x":1}}'),
    ([date(2026, 1, 2), UUID(int=1), Decimal("1.5")], '["2026-01-02","00000000-0000-0000-0000-000000000001","1.5"]'),
    ([ValueError("why")], '["why"]'),
    ({(1, 2): "tuple"}, '{"(1, 2)":"tuple"}'),
    ([object(), HostileText(), int], '["[object]","[HostileText]","[type]"]'),
    ([(n for n in ())], '["[generator]"]'),
    ([math.nan, math.inf, -math.inf], "[NaN,Infinity,-Infinity]"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_text(value: Any, text: str | None) -> None:
    assert as_text(value) == text


def test_values_without_an_end() -> None:
    for value in (deep(200_000), CYCLE, Hostile(), [Hostile()], {"a": deep(100_000), "b": CYCLE}):
        text = as_text(value)
        assert text is not None
        assert len(text) < 1_000_000


def test_long_texts_are_cut() -> None:
    text = as_text(["x" * 5_000_000])
    assert text is not None
    assert text.endswith("… [truncated, 5000004 characters in total]")
    assert len(text) < 801_000


def test_names_and_numbers() -> None:
    assert clean_name("a\nb\x7f" + "c" * 300) == ("a b " + "c" * 300)[:255]
    assert [clean_name(value) for value in ("", None, 7, HostileText())] == [None] * 4
    counts = [clean_count(value) for value in (3, 3.0, True, -1, 2**31, math.nan, math.inf, "3", None)]
    assert counts == [3, 3, None, None, None, None, None, None, None]
    assert clean_parts(10, {"a": 6, "b": 5}) == {}
    assert clean_parts(10, {"a": 6, "b": math.nan}) == {"a": 6, "b": None}
    usd = [
        clean_usd(value) for value in (0, 0.5, Decimal("0.1"), -math.inf, math.nan, -1, True, "1", 2e6, HostileText())
    ]
    assert usd == [0, 0.5, 0.1, None, None, None, None, None, None, None]


def test_errors() -> None:
    assert error_text(ValueError()) == "ValueError"
    assert error_text({"message": "m"}) == "m"

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(Silent()) == "Silent"
    loop = ValueError("a")
    loop.__cause__ = loop
    assert error_text(loop) == "a"


def test_hostile_values_are_recorded(tally: TraceTally, recorded: Recorded) -> None:
    for value in (Hostile(), deep(100_000), CYCLE, math.nan, b"bytes", "x" * 3_000_000):
        with tally.measure("m", input=value, feature=recorded.feature) as call:
            call.set(output=value, prompt_tokens=math.inf, completion_tokens=-1, cost_usd=-math.inf, model=Hostile())
    traces = recorded.all()
    assert len(traces) == 6
    for trace in traces:
        has(trace, model="m", status="success", prompt_tokens=None, completion_tokens=None, cost_usd=None)
    assert json.loads(traces[2]["input"])["a"] == 1
