"""The real server, and what tests ask it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tracetally import TraceTally

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).parents[1] / "src"
DEADLINE_SECONDS = 120.0

_features = itertools.count(1)


def fresh_feature() -> str:
    return f"feature-{os.getpid()}-{next(_features)}"


def unused_port() -> int:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])


def eventually(description: str, check: Callable[[], Any], seconds: float = DEADLINE_SECONDS) -> Any:
    """Waits until the check returns something."""
    ends_at = time.monotonic() + seconds
    while True:
        result = check()
        if result:
            return result
        assert time.monotonic() < ends_at, f"not within {seconds:g} s: {description}"
        time.sleep(0.02)


def plain_environment(**more: str) -> dict[str, str]:
    """No setting of the developer leaks in."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRACETALLY_")}
    path = os.pathsep.join(filter(None, [str(SOURCE), str(Path(__file__).parent), inherited.get("PYTHONPATH")]))
    return {**inherited, "PYTHONPATH": path, **more}


class Server:
    """`tracetally serve` on a free port and an empty store."""

    key = "tt_python_client_tests"

    def __init__(self, *flags: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="tracetally-python-")
        self._flags = flags
        self.port = unused_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        own = ROOT / "node_modules" / ".bin" / "node"
        node = str(own) if own.exists() else shutil.which("node") or "node"
        program = [node, str(ROOT / "server" / "bin" / "tracetally.js"), "serve"]
        store = f"sqlite:{self._folder}/tracetally.db"
        flags = ["--port", str(self.port), "--database", store, "--log-level", "warn", *self._flags]
        self._process = subprocess.Popen(
            [*program, *flags],
            env=plain_environment(TRACETALLY_API_KEY=self.key),
            stdout=subprocess.DEVNULL,
        )
        eventually("the server is ready", self._is_ready)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(DEADLINE_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def get(self, path: str, **query: Any) -> Any:
        text = urllib.parse.urlencode(query, doseq=True)
        request = urllib.request.Request(f"{self.url}{path}?{text}", headers={"authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def count(self, **query: Any) -> int:
        return int(self.get("/analytics/query", **query)["totals"]["call_count"])

    def traces(self, **query: Any) -> list[dict[str, Any]]:
        """Oldest first."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.get("/traces", limit=100, **query, **cursor)
            found.extend(page["traces"])
            if page.get("next_cursor") is None:
                return found[::-1]
            cursor = {"cursor": page["next_cursor"]}


class Recorded:
    """What one test has recorded."""

    def __init__(self, server: Server, tally: TraceTally, errors: list[Exception], feature: str) -> None:
        self._server = server
        self._tally = tally
        self._errors = errors
        self.feature = feature

    def all(self) -> list[dict[str, Any]]:
        assert self._tally.flush(DEADLINE_SECONDS), "the client could not send everything"
        assert not self._errors, self._errors
        return self._server.traces(feature_name=self.feature)

    def only(self) -> dict[str, Any]:
        traces = self.all()
        assert len(traces) == 1, traces
        return traces[0]


def has(trace: Mapping[str, Any], **expected: Any) -> None:
    """Compares the named fields; None also means that the trace does not have the field."""
    assert {name: trace.get(name) for name in expected} == expected


def run_program(
    code: str, *args: str, timeout: float = DEADLINE_SECONDS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=plain_environment(**environment),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
