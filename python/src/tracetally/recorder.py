"""What the wrappers need from the client. Importing this module loads all that sending needs."""

from __future__ import annotations

import encodings.idna as _idna
import logging as _logging
import os
import random
import time

from .call import Trace
from .delivery import new_idempotency_key, pause_seconds
from .errors import Reporter, TraceTallyError
from .prepare import preparer
from .sender import Payload, Sender
from .settings import Settings
from .transport import Transport, bad_reply, may_pass

# Imported now, because they are used by the client's thread: Python imports the first when it looks up the first host. A
# child that is forked in the middle of an import would wait for it forever.
_ = (_idna, _logging)


class ClientRecorder:
    """What the wrappers use. Its methods never raise, except `store_now`."""

    def __init__(self, settings: Settings, reporter: Reporter) -> None:
        self._settings = settings
        self._reporter = reporter
        self._prepare = preparer(settings, reporter)
        self.sender = Sender(settings, self._prepare, reporter)

    def wants_call(self) -> bool:
        return random.random() < self._settings.sample_rate

    def process(self) -> int:
        return os.getpid()

    def enqueue(self, payload: Payload, size: int) -> None:
        self.sender.enqueue(payload, size)

    def report(self, error: Exception) -> None:
        self._reporter.report(error)

    def store_now(self, trace: Trace) -> Trace:
        # A connection of its own: `record` may be called by many threads.
        transport = Transport(self._settings)
        body = transport.pack(self._prepare(trace))
        key = new_idempotency_key()
        retries = 0
        try:
            while True:
                try:
                    reply = transport.post("/traces?price_missing_costs=true", body, key)
                    if not isinstance(reply.get("id"), str) or not isinstance(reply.get("model"), str):
                        raise bad_reply(201)
                    return reply
                except TraceTallyError as error:
                    after = error.retry_after_seconds
                    is_too_long = after is not None and after > self._settings.retry_delay_max_seconds
                    if not may_pass(error) or retries >= self._settings.max_retries or is_too_long:
                        raise
                    time.sleep(pause_seconds(retries, after, self._settings))
                retries += 1
        finally:
            transport.drop()
