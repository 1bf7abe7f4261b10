"""Forks, the end of the process, and other runtimes. Each test runs a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from support import Server, fresh_feature, plain_environment, run_program, unused_port

START = """
import asyncio, multiprocessing, os, sys, threading, time
from tracetally import TraceTally
feature = os.environ["FEATURE"]
errors = []
tally = TraceTally(
    # A busy machine is slow, but nothing here may be lost.
    close_timeout_seconds=float(os.environ.get("CLOSE_SECONDS", "30")),
    on_error=lambda error: (errors.append(error), print(error, file=sys.stderr)),
)
def record(count=1, name="m"):
    for _ in range(count):
        with tally.measure(name, input="hi", feature=feature):
            pass
"""


class Program:
    def __init__(self, server: Server) -> None:
        self._server = server
        self.feature = fresh_feature()

    def run(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        known = {"TRACETALLY_API_KEY": self._server.key, "TRACETALLY_URL": self._server.url, "FEATURE": self.feature}
        return run_program(START + code, **{**known, **environment})

    def counts(self, code: str, **environment: str) -> dict[str, int]:
        """How many calls of each name the server has after the program."""
        done = self.run(code, **environment)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        rows = self._server.get("/analytics/query", feature_name=self.feature, group_by="model")["rows"]
        return {row["model"]: row["call_count"] for row in rows}


@pytest.fixture
def program(server: Server) -> Program:
    return Program(server)


def test_the_end_of_a_program_sends_everything(program: Program) -> None:
    assert program.counts("record(250)") == {"m": 250}


def test_calls_in_exit_handlers_are_sent(program: Program) -> None:
    code = """
import atexit
atexit.register(record, 1, "late")
record(1, "first")
atexit.register(record, 1, "early")
"""
    assert program.counts(code) == {"first": 1, "late": 1, "early": 1}
    before = "import atexit\natexit.register(lambda: record(2, 'before'))\n" + START
    known = {"TRACETALLY_API_KEY": program._server.key, "TRACETALLY_URL": program._server.url}
    done = run_program(before, FEATURE=program.feature, **known)
    assert done.stderr == ""
    assert program._server.count(feature_name=program.feature, model="before") == 2


def test_a_program_that_raises(program: Program) -> None:
    done = program.run("record(3)\nraise SystemExit(3)")
    assert done.returncode == 3
    assert program._server.count(feature_name=program.feature) == 3


def test_streams_that_are_open_at_the_end(program: Program) -> None:
    code = """
from fake_provider import FakeProvider
import openai
with FakeProvider() as provider:
    client = tally.wrap_openai(openai.OpenAI(api_key="none", base_url=provider.url + "/v1"), feature=feature)
    stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
    [next(stream) for _ in range(2)]
    del client
"""
    examples = os.path.join(os.path.dirname(__file__), "..", "..", "examples")
    paths = os.pathsep.join(filter(None, [plain_environment()["PYTHONPATH"], examples]))
    done = program.run(f"sys.path[:0] = {paths.split(os.pathsep)!r}\n{code}")
    assert done.returncode == 0, done.stderr
    assert program._server.count(feature_name=program.feature) == 1


@pytest.mark.parametrize("fault", ["refused", "silent"])
def test_a_dead_server_delays_the_end_by_less_than_two_seconds(fault: str, program: Program) -> None:
    code = f"""
import socket
if {fault!r} == "silent":
    listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
record(30)
time.sleep(0.1)
import atexit
atexit.register(lambda: None)
began = time.monotonic()
import tracetally.process as process
end = process._end_all
def timed():
    end()
    print(time.monotonic() - began)
atexit.unregister(end)
atexit.register(timed)
"""
    port = str(unused_port())
    done = program.run(code, TRACETALLY_URL=f"http://127.0.0.1:{port}", PORT=port, CLOSE_SECONDS="1.5")
    assert done.returncode == 0
    assert "Dropped 30 traces at shutdown: nothing could be sent for 1.5 s." in done.stderr
    assert done.stderr.count("\n") == 1
    assert float(done.stdout) < 2.0 * slowness()


def slowness() -> float:
    """How much slower this machine is just now than the time that a sleep asks for."""
    started = time.monotonic()
    time.sleep(0.2)
    return max(1.0, (time.monotonic() - started) / 0.2)


FORKS: dict[str, str] = {
    "os.fork before the first call": """
pids = []
for number in range(8):
    pid = os.fork()
    if pid == 0:
        record(5, f"child-{number}")
        sys.exit(0)
    pids.append(pid)
record(5, "parent")
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 8
""",
    "os.fork under load": """
is_over = threading.Event()
def load():
    while not is_over.is_set():
        record(1, "busy")
        counted.append(1)
        time.sleep(0.002)
counted = []
threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads: thread.start()
record(5, "parent")
pids = []
for number in range(8):
    time.sleep(0.02)
    pid = os.fork()
    if pid == 0:
        record(5, f"child-{number}")
        os._exit(0 if tally.flush(50) and tally.stats().sent == 5 else 7)
    pids.append(pid)
ends = [os.waitpid(pid, 0)[1] for pid in pids]
is_over.set()
assert ends == [0] * 8, ends
for thread in threads: thread.join()
assert tally.flush(30)
assert tally.stats().sent == len(counted) + 5, (tally.stats(), len(counted))
print(len(counted))
""",
    "os.fork with every lock held": """
record(5, "parent")
sender = tally._recorder.sender
held, release = threading.Event(), threading.Event()
def hold():
    with sender._lock:
        held.set()
        release.wait(30)
thread = threading.Thread(target=hold)
thread.start()
held.wait(30)
pids = []
for number in range(8):
    pid = os.fork()
    if pid == 0:
        record(5, f"child-{number}")
        tally.close()
        os._exit(0)
    pids.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 8
release.set()
thread.join()
""",
    "multiprocessing by fork": """
def work(number):
    record(5, f"child-{number}")
record(5, "parent")
context = multiprocessing.get_context("fork")
workers = [context.Process(target=work, args=(number,)) for number in range(8)]
for worker in workers: worker.start()
for worker in workers: worker.join()
assert [worker.exitcode for worker in workers] == [0] * 8
""",
    "a pool of processes": """
from concurrent.futures import ProcessPoolExecutor
def work(number):
    record(5, f"child-{number}")
record(5, "parent")
with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as pool:
    list(pool.map(work, range(8)))
""",
}


@pytest.mark.parametrize("way", FORKS)
def test_forked_children_send_their_own_calls_only(way: str, program: Program) -> None:
    counts = program.counts(FORKS[way])
    counts.pop("busy", None)
    assert counts == {"parent": 5, **{f"child-{number}": 5 for number in range(8)}}


def test_a_call_that_a_fork_interrupts_is_the_parents(program: Program) -> None:
    code = """
with tally.measure("m", feature=feature):
    pid = os.fork()
if pid == 0:
    assert tally.stats() == (0, 0, 0, 0, 0, 0)
    sys.exit(0)
os.waitpid(pid, 0)
"""
    assert program.counts(code) == {"m": 1}


def test_a_child_of_a_child(program: Program) -> None:
    code = """
record(1, "one")
if os.fork() == 0:
    record(1, "two")
    if os.fork() == 0:
        record(1, "three")
        sys.exit(0)
    os.wait()
    sys.exit(0)
os.wait()
"""
    assert program.counts(code) == {"one": 1, "two": 1, "three": 1}


def test_os_exit_loses_what_was_not_flushed(program: Program) -> None:
    """As documented: nothing runs after `os._exit`, so the program must flush."""
    program.run("record(3, 'lost')\nos._exit(0)")
    program.run("record(3, 'kept')\ntally.flush()\nos._exit(0)")
    assert program._server.count(feature_name=program.feature, model="kept") == 3
    assert program._server.count(feature_name=program.feature, model="lost") == 0


RUNTIMES: dict[str, tuple[str, str]] = {
    "gevent": (
        "gevent",
        """
def work(number):
    for _ in range(10):
        record()
        gevent.sleep(0)
gevent.joinall([gevent.spawn(work, number) for number in range(50)])
began = time.monotonic()
assert tally.flush(30)
assert tally.stats().sent == 500
record(5)
""",
    ),
    "uvloop": (
        "uvloop",
        """
async def main():
    async def work():
        record()
        await asyncio.sleep(0.001)
    await asyncio.gather(*(work() for _ in range(500)))
    await tally.aflush()
    record(5)
    await tally.aclose()
uvloop.run(main())
""",
    ),
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_other_runtimes(runtime: str, program: Program) -> None:
    pytest.importorskip(runtime)
    module, code = RUNTIMES[runtime]
    patch = (
        "import gevent.monkey\ngevent.monkey.patch_all()\nimport gevent\n" if module == "gevent" else "import uvloop\n"
    )
    known = {"TRACETALLY_API_KEY": program._server.key, "TRACETALLY_URL": program._server.url}
    done = run_program(patch + START + code, FEATURE=program.feature, **known)
    assert done.returncode == 0, done.stderr
    assert program._server.count(feature_name=program.feature) == 505


def test_a_notebook_is_a_loop_that_runs_already(program: Program) -> None:
    code = """
async def cell():
    record(3)
    assert tally.flush(30)
    tally.close()
asyncio.run(cell())
"""
    assert program.counts(code) == {"m": 3}


def test_a_signal_handler_may_close(program: Program) -> None:
    code = """
import signal
def stop(*_):
    tally.close()
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
while True:
    record(1)
    time.sleep(0.001)
"""
    done = program.run(code)
    assert done.returncode == 0, done.stderr
    assert program._server.count(feature_name=program.feature) > 3


def test_import_and_size(program: Program) -> None:
    """Nothing of third parties is imported, and no module that a program without calls does not need."""
    code = "import sys; before = set(sys.modules); import tracetally; print(*sorted(set(sys.modules) - before))"
    modules = set(run_program(code).stdout.split())
    assert "tracetally.client" in modules
    roots = {name.split(".")[0] for name in modules} - {"tracetally"}
    assert roots <= set(sys.stdlib_module_names)
    assert roots.isdisjoint({"asyncio", "http", "ssl", "socket", "inspect", "dataclasses", "logging", "email"})


def test_threads_are_not_started_before_the_first_call(program: Program) -> None:
    code: Any = """
assert threading.active_count() == 1
record()
assert [thread.name for thread in threading.enumerate()][1:] == ["tracetally"]
"""
    assert program.counts(code) == {"m": 1}
