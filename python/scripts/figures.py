"""Prints what the client costs an app: `python scripts/figures.py`. Each figure has a control, and is the best of several runs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
sys.path.insert(0, str(SOURCE))

from tracetally import TraceTally  # noqa: E402

CALLS = 50
ROUNDS = 100


def import_ms(statement: str) -> float:
    """CPU time of an interpreter that runs the statement."""
    best = float("inf")
    for _ in range(15):
        before = os.times()
        subprocess.run([sys.executable, "-c", statement], check=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})
        after = os.times()
        best = min(best, after.children_user + after.children_system - before.children_user - before.children_system)
    return best * 1000


def importtime_ms(module: str) -> float:
    """What -X importtime says."""
    best = float("inf")
    for _ in range(15):
        command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        (line,) = [line for line in done.stderr.splitlines() if line.split("|")[-1].strip() == module]
        best = min(best, int(line.split("|")[1]) / 1000)
    return best


class Sink(BaseHTTPRequestHandler):
    """Says that it has stored everything."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        import gzip

        body = self.rfile.read(int(self.headers["content-length"]))
        count = len(json.loads(gzip.decompress(body))["traces"])
        data = json.dumps({"traces": [{}] * count, "rejected": []}).encode()
        self.send_response(201)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def caller_us(work: Callable[[], object]) -> float:
    """CPU time of this thread for each call."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(CALLS):
            work()
        best = min(best, time.thread_time() - started)
    return best / CALLS * 1_000_000


class Answering:
    """An OpenAI client whose requests are answered without a network."""

    def __init__(self) -> None:
        import openai
        from openai.types.chat import ChatCompletion

        answer = ChatCompletion.model_validate(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": "gpt-4o-2024-08-06",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": "Hello there. " * 40},
                    }
                ],
                "usage": {"prompt_tokens": 1200, "completion_tokens": 300, "total_tokens": 1500},
            }
        )

        class Client(openai.OpenAI):
            def post(self, *args: Any, **kwargs: Any) -> Any:
                return answer

        self.client = Client(api_key="none")


def main() -> None:
    empty = import_ms("pass")
    print(
        f"import tracetally: {importtime_ms('tracetally'):.1f} ms by -X importtime; control: json {importtime_ms('json'):.1f} ms"
    )
    print(
        f"  CPU time of the interpreter: {import_ms('import tracetally') - empty:.1f} ms over an empty one ({empty:.1f} ms)"
    )
    size = sum(path.stat().st_size for path in (SOURCE / "tracetally").glob("*.py"))
    print(f"installed size: {size / 1000:.0f} kB in {len(list((SOURCE / 'tracetally').glob('*.py')))} modules")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tally = TraceTally(
        api_key="tt_x",
        base_url=f"http://127.0.0.1:{server.server_port}",
        max_queue_traces=1_000_000,
        flush_interval_seconds=3_600,
        max_batch_traces=1_000,
    )

    def measured() -> None:
        with tally.measure("m", input="hi", feature="f") as call:
            call.set(output="ho", prompt_tokens=1, completion_tokens=1)

    print(f"overhead per call, CPU time of the caller's thread, {ROUNDS} rounds of {CALLS} calls:")
    print(f"  measure: {caller_us(measured):.1f} µs; control (an empty block): {caller_us(lambda: None):.1f} µs")
    messages: list[Any] = [{"role": "user", "content": "What is the weather like? " * 20}] * 6
    try:
        plain: Any = Answering().client
    except ImportError:
        print("  openai is not installed")
        return
    wrapped = tally.wrap_openai(plain, feature="f")

    def ask(client: Any) -> Callable[[], object]:
        return lambda: client.chat.completions.create(model="gpt-4o", messages=messages)

    control, with_client = caller_us(ask(plain)), caller_us(ask(wrapped))
    print(
        f"  chat completion of 6 messages (3 kB): {with_client - control:.1f} µs over {control:.1f} µs of the SDK alone"
    )
    assert tally.flush(120)
    print(f"  {tally.stats()}")
    dead = "from tracetally import TraceTally\ntally = TraceTally(api_key='tt_x', base_url='http://127.0.0.1:9')\n" + (
        "for _ in range(100):\n    tally.enqueue(model='m')\n"
    )
    times: list[float] = []
    for _ in range(3):
        started = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        subprocess.run([sys.executable, "-c", dead], env=environment, capture_output=True, check=True)
        times.append(time.monotonic() - started)
    print(f"process with a dead server: ends after {statistics.median(times):.2f} s, the start of Python included")


main()
