"""Stands between the client and the real server, and breaks what passes."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = Literal["pass", "503", "500", "413", "reset", "reply lost", "half a reply", "stranger", "no reply"]


class FaultProxy:
    """`next_fault` decides about each request. It runs until `stop`."""

    def __init__(self, target_port: int, next_fault: Callable[[], Fault], *, keeps_keys: bool = True) -> None:
        self.keys: list[str] = []
        proxy = self
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with lock:
                    fault = next_fault()
                    proxy.keys.append(self.headers.get("idempotency-key", ""))
                if fault in ("503", "500", "413"):
                    return self._reply(int(fault), b'{"code":"store_busy","detail":"Busy."}', {})
                if fault == "stranger":
                    return self._reply(200, b"<html>Welcome!</html>", {})
                if fault == "no reply":
                    proxy.stopped.wait(60)
                    return self._reset()
                if fault == "reset":
                    return self._reset()
                try:
                    status, headers, data = self._forward(body)
                except OSError:
                    return self._reset()
                if fault == "reply lost":
                    return self._reset()
                if fault == "half a reply":
                    self.wfile.write(b"HTTP/1.1 201 Created\r\ncontent-length: 1000\r\n\r\n" + data[:10])
                    return self._reset()
                return self._reply(status, data, headers)

            def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
                connection = http.client.HTTPConnection("127.0.0.1", target_port, timeout=30)
                sent = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                if not keeps_keys:
                    sent.pop("idempotency-key", None)
                connection.request("POST", self.path, body, sent)
                reply = connection.getresponse()
                data = reply.read()
                connection.close()
                return reply.status, {"content-type": reply.headers.get("content-type", "")}, data

            def _reply(self, status: int, data: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def _reset(self) -> None:
                self.close_connection = True
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.shutdown(socket.SHUT_RDWR)

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self.stopped = threading.Event()
        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
