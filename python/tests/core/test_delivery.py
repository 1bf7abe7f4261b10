"""Every call is stored once or counted as not stored, whatever happens to the server and the network."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fault_proxy import Fault, FaultProxy
from support import Recorded, Server, eventually, fresh_feature, unused_port
from tracetally import Stats, TraceTally, TraceTallyError

FAULTS: tuple[Fault, ...] = ("503", "500", "reset", "reply lost", "half a reply", "stranger")


def record(tally: TraceTally, feature: str, count: int = 1) -> None:
    for _ in range(count):
        with tally.measure("m", input="hi", feature=feature) as call:
            call.set(output="ho", prompt_tokens=1, completion_tokens=1)


def sum_of(stats: Stats) -> int:
    return stats.queued + stats.sent + stats.dropped + stats.rejected + stats.failed


def quick(url: str, key: str, errors: list[Exception], **more: Any) -> TraceTally:
    options: dict[str, Any] = {
        "flush_interval_seconds": 0.01,
        "retry_delay_seconds": 0.01,
        "retry_delay_max_seconds": 0.1,
        "max_batch_traces": 10,
    }
    return TraceTally(api_key=key, base_url=url, on_error=errors.append, **{**options, **more})


@pytest.mark.parametrize("keeps_keys", [True, False])
def test_faults_of_every_kind(keeps_keys: bool, server: Server, errors: list[Exception]) -> None:
    """With idempotency keys nothing is stored twice; without them this test would see it."""
    feature = fresh_feature()
    chance = random.Random(7)

    def next_fault() -> Fault:
        return chance.choice(FAULTS) if chance.random() < 0.6 else "pass"

    with FaultProxy(server.port, next_fault, keeps_keys=keeps_keys) as proxy:
        tally = quick(proxy.url, server.key, errors, max_retries=100)
        record(tally, feature, 300)
        assert tally.flush(60)
        stats = tally.stats()
        tally.close()
    stored = server.count(feature_name=feature)
    assert sum_of(stats) == stats.sent == 300
    assert stats.retries > 10
    if keeps_keys:
        assert stored == 300
    else:
        assert stored > 300


@pytest.mark.parametrize("way", ["64 threads", "1,000 tasks"])
def test_ten_thousand_calls_at_once(way: str, server: Server, errors: list[Exception]) -> None:
    feature = fresh_feature()
    chance = random.Random(11)

    def next_fault() -> Fault:
        return chance.choice(FAULTS) if chance.random() < 0.2 else "pass"

    async def tasks() -> None:
        async def task() -> None:
            for _ in range(10):
                record(tally, feature)
                await asyncio.sleep(0)

        await asyncio.gather(*(task() for _ in range(1_000)))

    with FaultProxy(server.port, next_fault) as proxy:
        tally = quick(proxy.url, server.key, errors, max_retries=100, max_batch_traces=200, max_queue_traces=3_000)
        if way == "64 threads":
            with ThreadPoolExecutor(64) as pool:
                for _ in range(64):
                    pool.submit(record, tally, feature, 156)
            record(tally, feature, 16)
        else:
            asyncio.run(tasks())
        assert tally.flush(120)
        stats = tally.stats()
        tally.close()
    assert sum_of(stats) == 10_000
    assert stats.queued == 0
    assert server.count(feature_name=feature) == stats.sent
    # Drops are reported once per episode, and counted.
    assert sum(getattr(error, "code", "") == "queue_overflow" for error in errors) <= stats.dropped


def test_a_server_that_is_down_for_a_while(errors: list[Exception], pytestconfig: pytest.Config) -> None:
    feature = fresh_feature()
    seconds = 30.0 if pytestconfig.getoption("--soak") else 2.0
    server = Server()
    tally = quick(server.url, server.key, errors)
    record(tally, feature, 50)
    eventually("the outage is reported", lambda: errors)
    time.sleep(seconds)
    with server:
        assert tally.flush(60)
        assert server.count(feature_name=feature) == tally.stats().sent == 50
        assert [getattr(error, "code", None) for error in errors] == ["network_error"]
        tally.close()


def test_kill_9_of_the_server_under_load(errors: list[Exception], pytestconfig: pytest.Config) -> None:
    feature = fresh_feature()
    rounds = 10 if pytestconfig.getoption("--soak") else 1
    with Server() as server:
        tally = quick(server.url, server.key, errors)
        is_over = threading.Event()
        counts: list[int] = []

        def load() -> None:
            count = 0
            while not is_over.is_set():
                record(tally, feature)
                count += 1
                time.sleep(0.001)
            counts.append(count)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(rounds):
            time.sleep(0.5)
            server.kill()
            server.start()
        is_over.set()
        for thread in threads:
            thread.join()
        assert tally.flush(60)
        assert server.count(feature_name=feature) == tally.stats().sent == sum(counts)
        tally.close()


def test_a_batch_keeps_its_key(server: Server, errors: list[Exception], recorded: Recorded) -> None:
    faults: list[Fault] = ["reply lost", "503", "pass"]
    with FaultProxy(server.port, lambda: faults.pop(0)) as proxy, quick(proxy.url, server.key, errors) as tally:
        record(tally, recorded.feature)
        assert tally.flush(60)
        assert len(set(proxy.keys)) == 1
        assert len(proxy.keys) == 3


def test_a_batch_that_is_too_large_is_halved(server: Server, errors: list[Exception]) -> None:
    feature = fresh_feature()
    faults: list[Fault] = ["413", "413", "pass", "pass", "413", "pass", "pass"]
    with FaultProxy(server.port, lambda: faults.pop(0)) as proxy:
        tally = quick(proxy.url, server.key, errors, max_batch_traces=8, flush_interval_seconds=30)
        record(tally, feature, 8)
        assert tally.flush(60)
        assert tally.stats().sent == server.count(feature_name=feature) == 8
        tally.close()


def test_rejected_traces_do_not_take_others_with_them(server: Server, errors: list[Exception]) -> None:
    feature = fresh_feature()
    with quick(server.url, server.key, errors, flush_interval_seconds=30) as tally:
        tally.enqueue(model="m", feature_name=feature)
        tally.enqueue(model="m", prompt_tokens=-1, feature_name=feature)
        tally.enqueue(model="m", metadata={"a": object()}, feature_name=feature)  # type: ignore[dict-item]
        tally.enqueue(model="m", feature_name=feature)
        tally.flush()
        stats = tally.stats()
    assert (stats.sent, stats.rejected, sum_of(stats)) == (2, 2, 4)
    assert {getattr(error, "code", None) for error in errors} == {"traces_rejected", "not_serialisable"}
    assert server.count(feature_name=feature) == 2


def test_a_wrong_key_is_not_retried(server: Server, errors: list[Exception]) -> None:
    with quick(server.url, "tt_wrong", errors) as tally:
        record(tally, "f", 3)
        assert tally.flush(60)
        assert tally.stats()._replace(retries=0) == Stats(0, 0, 0, 0, 3, 0)
    assert errors
    assert "Gave up on" in str(errors[0])


def test_a_full_queue_drops_and_counts(errors: list[Exception]) -> None:
    tally = quick(f"http://127.0.0.1:{unused_port()}", "tt_x", errors, max_queue_traces=5, close_timeout_seconds=0.2)
    record(tally, "f", 12)
    assert tally.stats().dropped == 7
    tally.close()
    record(tally, "f", 1)
    stats = tally.stats()
    assert (stats.dropped, stats.failed, stats.queued) == (8, 5, 0)
    assert [getattr(error, "code", None) for error in errors] == ["queue_overflow", "given_up", "closed"]


def test_bytes_bound_the_queue(errors: list[Exception]) -> None:
    tally = quick(
        f"http://127.0.0.1:{unused_port()}", "tt_x", errors, max_queue_bytes=1_000_000, close_timeout_seconds=0.1
    )
    for _ in range(10):
        tally.enqueue(model="m", input="x" * 300_000)
    assert tally.stats().dropped == 7
    tally.close()


def test_close_waits_while_batches_get_through(server: Server, errors: list[Exception]) -> None:
    feature = fresh_feature()

    def slowly() -> Fault:
        time.sleep(0.2)
        return "pass"

    with FaultProxy(server.port, slowly) as proxy:
        tally = quick(proxy.url, server.key, errors, close_timeout_seconds=3.0)
        record(tally, feature, 200)
        started = time.monotonic()
        tally.close()
        assert time.monotonic() - started > 3.0
    assert tally.stats().sent == server.count(feature_name=feature) == 200
    assert errors == []


def test_close_gives_up_on_a_server_that_does_not_reply(server: Server, errors: list[Exception]) -> None:
    with FaultProxy(server.port, lambda: "no reply") as proxy:
        tally = quick(proxy.url, server.key, errors, close_timeout_seconds=0.3)
        record(tally, "f", 3)
        tally.close()
        tally.close()
    assert tally.stats().failed == 3
    (error,) = errors
    assert str(error).startswith("Dropped 3 traces at shutdown: nothing could be sent for 0.3 s.")


def test_hooks_that_call_the_client_do_not_block_it(server: Server) -> None:
    """A mask runs on the thread that sends, which must not wait for itself."""
    feature = fresh_feature()

    def mask(text: str) -> str:
        tally.flush()
        tally.close()
        tally.enqueue(model="inner", feature_name=feature)
        return text

    def on_error(error: Exception) -> None:
        tally.flush()
        raise RuntimeError

    tally = TraceTally(api_key=server.key, base_url=server.url, mask=mask, on_error=on_error)
    tally.enqueue(model="m", input="x", feature_name=feature)
    tally.enqueue(model="", input="x", feature_name=feature)
    assert tally.flush(60)
    assert server.count(feature_name=feature) >= 1


def test_calls_in_finalizers_and_signal_handlers(server: Server, errors: list[Exception]) -> None:
    """They may interrupt a thread that is recording."""
    import signal

    feature = fresh_feature()

    class Finalized:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            record(tally, feature)

    tally = quick(server.url, server.key, errors, max_queue_traces=100_000)
    handled: list[int] = []

    def handler(*_: object) -> None:
        handled.append(1)
        record(tally, feature)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    gc.set_threshold(50)
    try:
        for _ in range(500):
            Finalized()
            record(tally, feature)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.set_threshold(700, 10, 10)
    gc.collect()
    assert tally.flush(120)
    assert tally.stats().sent == server.count(feature_name=feature) == 1_000 + len(handled)
    tally.close()


def test_record_retries_and_reports(server: Server, errors: list[Exception]) -> None:
    def with_faults(*faults: Fault) -> Callable[[], Fault]:
        left = list(faults)
        return lambda: left.pop(0) if left else "pass"

    feature = fresh_feature()
    with FaultProxy(server.port, with_faults("reply lost", "503", "half a reply")) as proxy:
        stored = quick(proxy.url, server.key, errors).record(model="m", feature_name=feature)
        assert stored is not None
    assert server.count(feature_name=feature) == 1
    with FaultProxy(server.port, lambda: "503") as proxy, pytest.raises(TraceTallyError) as raised:
        quick(proxy.url, server.key, errors).record(model="m")
    assert raised.value.status == 503
    assert len(proxy.keys) == 5
