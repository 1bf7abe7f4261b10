"""Forks and the end of the process. One handler of each kind serves all clients of a process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from typing import Any, Protocol


class Ending(Protocol):
    def begin_again(self) -> None:
        """Runs in a forked child: forget what belongs to the parent."""

    def request_send(self) -> bool: ...

    def drain(self, since: float, *, is_exit: bool = False) -> None: ...


class _ThreadState(threading.local):
    is_finalizing_object = False
    """A finalizer may run while this thread starts another one, which it must not do again: it would wait for itself."""


thread_state = _ThreadState()
_live: weakref.WeakSet[Any] = weakref.WeakSet()
_handlers_of: int | None = None
_finalizer_of: int | None = None


def watch_process(sender: Ending) -> None:
    global _handlers_of
    _live.add(sender)
    if _handlers_of is None:
        _handlers_of = os.getpid()
        atexit.register(_end_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)


def watch_worker_end() -> None:
    """Children of multiprocessing end without running atexit handlers, but they run its finalizers."""
    global _finalizer_of
    module = sys.modules.get("multiprocessing.process")
    if module is None or _finalizer_of == os.getpid() or module.parent_process() is None:
        return
    _finalizer_of = os.getpid()
    from multiprocessing.util import Finalize

    Finalize(None, _end_all, exitpriority=0)


def _after_fork() -> None:
    for sender in _all_of(_live):
        sender.begin_again()


def _end_all() -> None:
    senders: list[Ending] = _all_of(_live)
    streams = sys.modules.get("tracetally.streams")
    for observer in _all_of(streams.open_observers) if streams is not None else ():
        observer.end()
    for sender in senders:
        sender.request_send()
    since = time.monotonic()
    for sender in senders:
        sender.drain(since, is_exit=True)


def _all_of(objects: weakref.WeakSet[Any]) -> list[Any]:
    """Other threads may add to the set meanwhile."""
    for _ in range(100):
        try:
            return list(objects)
        except RuntimeError:
            continue
    return []
