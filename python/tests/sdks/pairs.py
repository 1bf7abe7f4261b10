"""Two clients of an SDK, as it is and wrapped, that must give the same results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pydantic


class Pair:
    """Runs every scene on both clients, which are both plain or both async."""

    def __init__(self, plain: Any, wrapped: Any) -> None:
        self.plain = plain
        self.wrapped = wrapped
        self._loop = asyncio.new_event_loop()

    def run(self, scene: Callable[[Any], Any]) -> Any:
        """The result of the wrapped client, which must be that of the plain one."""
        expected, got = self._outcome(scene, self.plain), self._outcome(scene, self.wrapped)
        assert repr(got) == repr(expected)
        return got

    def _outcome(self, scene: Callable[[Any], Any], client: Any) -> Any:
        return self._loop.run_until_complete(_outcome(scene, client))


async def _outcome(scene: Callable[[Any], Any], client: Any) -> Any:
    try:
        return await _read(scene(client))
    except Exception as error:
        return (type(error), str(error))


async def _read(result: Any) -> Any:
    """Everything that a caller can get from a result, whether it is awaited, opened, parsed or iterated."""
    if hasattr(result, "__await__"):
        return await _read(await result)
    if type(result).__name__.endswith("Manager"):
        if hasattr(result, "__aenter__"):
            async with result as opened:
                return await _read(opened)
        with result as opened:
            return await _read(opened)
    if hasattr(result, "http_response"):
        return await _read(result.parse())
    if hasattr(result, "__anext__"):
        return [_dumped(item) async for item in result]
    return [_dumped(item) for item in result] if hasattr(result, "__next__") else _dumped(result)


def _dumped(value: Any) -> Any:
    """Everything that a model says, and which fields were set."""
    if isinstance(value, pydantic.BaseModel):
        every = value.model_dump(warnings=False)
        return (type(value).__name__, every, value.model_dump(exclude_unset=True, warnings=False))
    return value
