"""Collects traces and sends them as batches, on a thread that is started when the first trace arrives."""

from __future__ import annotations

# Names are looked up in these modules when they are used, so that gevent can replace them.
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from .call import Trace
from .delivery import Abandoned, Outcome, deliver
from .errors import Reporter, TraceTallyError, traces_in_words
from .process import thread_state, watch_process, watch_worker_end
from .settings import Settings
from .stats import Stats
from .transport import Transport

_IDLE_SECONDS = 30.0
"""A thread without work ends after this time."""

Payload = Trace | Callable[[], Trace] | bytes
Prepare = Callable[[Trace], bytes]


class Sender:
    def __init__(self, settings: Settings, prepare: Prepare, reporter: Reporter) -> None:
        self._settings = settings
        self._prepare = prepare
        self._reporter = reporter
        self._is_closed = False
        self._begin()
        watch_process(self)

    def _begin(self) -> None:
        self._pid = os.getpid()
        # Reentrant: a signal handler or a finalizer may record a call while this thread records one.
        self._lock = threading.RLock()
        self._settled = threading.Condition(self._lock)
        self._pending: deque[tuple[int, Payload]] = deque()
        self._wake: queue.SimpleQueue[None] | None = None
        self._thread: threading.Thread | None = None
        self._is_starting = False
        self._transport = Transport(self._settings)
        self._held_bytes = 0
        self._pending_bytes = 0
        self._accepted = 0
        self._done = 0
        self._due = 0
        """Traces up to this one are sent without waiting for more. They are settled in their order."""
        self._sent = self._dropped = self._rejected = self._failed = self._retries = 0
        self._epoch = 0
        """Grows when the client gives up on everything that it holds."""
        self._drains = 0
        self._has_exited = False
        self._stalls_at: float | None = None
        """If the batches are sent by a thread that waits for them: when to give up."""
        self._progress_at = 0.0
        self._last_failure: TraceTallyError | None = None
        self._is_drop_reported = self._is_outage_reported = False

    def begin_again(self) -> None:
        """In a forked child nothing of the parent is usable: its thread is gone, and its locks may be held forever."""
        self._begin()

    # --- Recording ---

    def enqueue(self, payload: Payload, size: int) -> None:
        """Never raises and never waits for the network."""
        if self._pid != os.getpid():
            self.begin_again()
        settings = self._settings
        with self._lock:
            is_full = self._accepted - self._done >= settings.max_queue_traces
            if self._is_closed or is_full or sys.is_finalizing() or self._held_bytes + size > settings.max_queue_bytes:
                self._dropped += 1
                is_first_drop = not self._is_drop_reported
                self._is_drop_reported = True
                held = self._accepted - self._done
                is_wake = False
            else:
                self._accepted += 1
                self._held_bytes += size
                self._pending_bytes += size
                self._pending.append((size, payload))
                is_first_drop, held = False, 0
                is_wake = len(self._pending) == 1 or self._thread is None or self._is_batch_full()
        if is_first_drop:
            self._reporter.report(self._drop_error(held))
        if is_wake:
            self._wake_thread()
        if self._has_exited:
            self.drain(time.monotonic(), is_exit=True)

    def _is_batch_full(self) -> bool:
        settings = self._settings
        return len(self._pending) >= settings.max_batch_traces or self._pending_bytes >= settings.max_batch_bytes

    def _drop_error(self, held: int) -> TraceTallyError:
        if self._is_closed:
            detail = "A trace was dropped because the client is closed. Further drops are only counted."
            return TraceTallyError(detail, code="closed")
        held_traces = traces_in_words(held)
        detail = f"A trace was dropped because the queue is full ({held_traces}). Further drops are only counted."
        return TraceTallyError(detail, code="queue_overflow")

    def _wake_thread(self) -> bool:
        """Starts the thread if there is none. False if the system or the end of the interpreter allows none."""
        # Python up to 3.11 would wait forever for a thread that is started at its end.
        if sys.is_finalizing():
            return False
        with self._lock:
            if self._wake is None:
                self._wake = queue.SimpleQueue()
            # A signal handler may get here while this thread is being started.
            is_needed = self._thread is None or not self._thread.is_alive()
            if is_needed and thread_state.is_finalizing_object:
                return True
            if is_needed and not self._is_starting:
                thread = threading.Thread(target=self._run, args=(self._wake,), name="tracetally", daemon=True)
                self._is_starting = True
                try:
                    thread.start()
                except RuntimeError:
                    return False
                finally:
                    self._is_starting = False
                self._thread = thread
                watch_worker_end()
        self._wake.put(None)
        return True

    # --- The thread ---

    def _run(self, wake: queue.SimpleQueue[None]) -> None:
        while True:
            if not self._pending:
                try:
                    wake.get(timeout=_IDLE_SECONDS)
                except queue.Empty:
                    with self._lock:
                        if not self._pending:
                            self._thread = None
                            return
                continue
            self._gather(wake)
            self._send_batch()

    def _gather(self, wake: queue.SimpleQueue[None]) -> None:
        """Waits until a batch is full, due or old enough."""
        ends_at = time.monotonic() + self._settings.flush_interval_seconds
        while not self._is_batch_full() and self._due <= self._done:
            left = ends_at - time.monotonic()
            try:
                if left <= 0:
                    return
                wake.get(timeout=left)
            except queue.Empty:
                return

    def _send_batch(self) -> None:
        epoch = self._epoch
        items, size, unusable = self._take(epoch)
        if items:
            self._deliver(items, size, epoch)
        # Settled after the traces before them, so that traces are settled in their order.
        for unusable_size, error in unusable:
            self._settle(1, unusable_size, Outcome(0, 1, 0, error), epoch)

    def _deliver(self, items: list[bytes], size: int, epoch: int) -> None:
        # Pieces of a batch share its size: the first one takes it.
        sizes = iter([size] + [0] * len(items))
        try:
            deliver(
                items,
                self._transport,
                self._settings,
                _Attempts(self, epoch),
                lambda count, outcome: self._settle(count, next(sizes), outcome, epoch),
            )
        except Abandoned:
            pass
        except Exception as error:
            # A bug in this package must not end the thread.
            problem = TraceTallyError(f"A batch could not be sent ({type(error).__name__}).", code="client_error")
            self._settle(len(items), next(sizes), Outcome(0, 0, len(items), problem), epoch)

    def _take(self, epoch: int) -> tuple[list[bytes], int, list[tuple[int, TraceTallyError]]]:
        """The oldest traces that fit into a batch; a trace that is larger than a batch is taken alone."""
        settings = self._settings
        items: list[bytes] = []
        unusable: list[tuple[int, TraceTallyError]] = []
        taken_size = data_bytes = 0
        while len(items) < settings.max_batch_traces:
            with self._lock:
                if not self._pending or epoch != self._epoch:
                    break
                size, payload = self._pending.popleft()
                self._pending_bytes -= size
            try:
                data = payload if isinstance(payload, bytes) else self._prepared(payload)
            except TraceTallyError as error:
                unusable.append((size, error))
                continue
            if items and data_bytes + len(data) > settings.max_batch_bytes:
                with self._lock:
                    if epoch == self._epoch:
                        self._pending.appendleft((size, data))
                        self._pending_bytes += size
                break
            items.append(data)
            data_bytes += len(data)
            taken_size += size
        return items, taken_size, unusable

    def _prepared(self, payload: Trace | Callable[[], Trace]) -> bytes:
        return self._prepare(payload() if callable(payload) else payload)

    def _settle(self, count: int, size: int, outcome: Outcome, epoch: int) -> None:
        with self._lock:
            # If the client has given up in the meantime, these traces are counted already.
            if epoch != self._epoch:
                return
            self._sent += outcome.stored
            self._rejected += outcome.rejected
            self._failed += outcome.failed
            self._done += count
            self._held_bytes -= size
            if outcome.stored:
                self._is_outage_reported = False
                self._last_failure = None
            if outcome.stored or outcome.rejected:
                self._progress_at = time.monotonic()
            if (self._accepted - self._done) * 2 <= self._settings.max_queue_traces and not self._is_closed:
                self._is_drop_reported = False
            self._settled.notify_all()
        if outcome.error is not None:
            self._reporter.report(outcome.error)

    # --- Attempts: called by the thread that sends ---

    def timeout(self, epoch: int) -> float:
        usual = self._settings.request_timeout_seconds
        stalls_at = self._stall_time()
        if epoch != self._epoch or (stalls_at is not None and stalls_at <= time.monotonic()):
            raise Abandoned
        return usual if stalls_at is None else min(usual, stalls_at - time.monotonic())

    def pause(self, seconds: float, error: TraceTallyError, retries: int, epoch: int) -> None:
        with self._lock:
            self._retries += 1
            self._last_failure = error
            is_outage = not self._is_outage_reported and not self._drains and retries >= self._settings.max_retries
            self._is_outage_reported = self._is_outage_reported or is_outage
            held = self._accepted - self._done
        if is_outage:
            self._reporter.report(error.with_consequence(f"Cannot send {traces_in_words(held)}; retrying"))
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0:
            self.timeout(epoch)
            if self._stalls_at is not None or self._wake is None:
                time.sleep(min(left, 0.05))
                continue
            try:
                self._wake.get(timeout=left)
            except queue.Empty:
                pass
        self.timeout(epoch)

    def _stall_time(self) -> float | None:
        if self._stalls_at is None:
            return None
        return max(self._stalls_at, self._progress_at + self._settings.close_timeout_seconds)

    # --- Waiting ---

    def stats(self) -> Stats:
        with self._lock:
            queued = self._accepted - self._done
            return Stats(queued, self._sent, self._dropped, self._rejected, self._failed, self._retries)

    def request_send(self) -> bool:
        """Everything so far is sent without waiting for more. False if there is no thread to send it."""
        with self._lock:
            self._due = self._accepted
            if self._due <= self._done:
                return True
        return self._wake_thread()

    def flush(self, timeout: float | None) -> bool:
        if self._pid != os.getpid():
            self.begin_again()
        if self._is_sending_thread():
            return False
        ends_at = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            target = self._accepted
        if not self.request_send():
            self._send_here(target, time.monotonic())
        with self._settled:
            while self._done < target:
                left = None if ends_at is None else ends_at - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._settled.wait(left)
        return True

    def close(self) -> None:
        self.drain(time.monotonic())
        with self._lock:
            self._is_closed = True
            self._is_drop_reported = False
        # Traces that were accepted during the first drain are sent as well.
        self.drain(time.monotonic())

    def drain(self, since: float, *, is_exit: bool = False) -> None:
        """Sends what is held, and drops it when no batch gets through for too long."""
        if self._pid != os.getpid():
            self.begin_again()
        if self._is_sending_thread():
            return
        with self._lock:
            self._has_exited = self._has_exited or is_exit
            target = self._due = self._accepted
            if self._done >= target:
                return
            self._drains += 1
        try:
            if self._wake_thread():
                self._wait_until(target, since)
            else:
                self._send_here(target, since)
        finally:
            with self._lock:
                self._drains -= 1

    def _is_sending_thread(self) -> bool:
        """A function of the caller, such as `mask`, runs on the sending thread and must not wait for itself."""
        return self._thread is not None and self._thread.ident == threading.get_ident()

    def _wait_until(self, target: int, since: float) -> None:
        with self._settled:
            while self._done < target:
                stalls_at = max(since, self._progress_at) + self._settings.close_timeout_seconds
                left = stalls_at - time.monotonic()
                if left <= 0:
                    break
                self._settled.wait(left)
            else:
                return
        self._abandon()

    def _send_here(self, target: int, since: float) -> None:
        """At the end of the interpreter no thread can be started."""
        self._stalls_at = since + self._settings.close_timeout_seconds
        try:
            while self._done < target and (self._stall_time() or 0) > time.monotonic():
                self._send_batch()
        finally:
            self._stalls_at = None
        if self._done < target:
            self._abandon()

    def _abandon(self) -> None:
        with self._lock:
            count = self._accepted - self._done
            self._failed += count
            self._done = self._accepted
            self._pending.clear()
            self._held_bytes = self._pending_bytes = 0
            self._epoch += 1
            failure = self._last_failure
            self._settled.notify_all()
        self._transport.cut()
        if self._wake is not None:
            self._wake.put(None)
        seconds = self._settings.close_timeout_seconds
        reason = failure.detail if failure is not None else "The server did not reply."
        dropped = f"Dropped {traces_in_words(count)} at shutdown"
        detail = f"{dropped}: nothing could be sent for {seconds:g} s. {reason}"
        self._reporter.report(TraceTallyError(detail, code="given_up"))


class _Attempts:
    def __init__(self, sender: Sender, epoch: int) -> None:
        self._sender = sender
        self._epoch = epoch

    def timeout(self) -> float:
        return self._sender.timeout(self._epoch)

    def pause(self, seconds: float, error: TraceTallyError, retries: int) -> None:
        self._sender.pause(seconds, error, retries, self._epoch)
