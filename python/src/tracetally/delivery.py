"""Sends one batch until it is settled."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from .errors import FieldError, TraceTallyError, traces_in_words
from .settings import IDEMPOTENCY_SECONDS, Settings
from .transport import Transport, bad_reply, may_pass

_BATCH_PATH = "/traces/batch?omit=input,output&price_missing_costs=true"


class Outcome(NamedTuple):
    """Result of a piece of a batch. The three numbers add up to the traces in it."""

    stored: int
    rejected: int
    failed: int
    error: TraceTallyError | None
    """What to report about it."""


class Abandoned(Exception):
    """The client has given up on everything that it held."""


class Attempts(Protocol):
    """What the sender decides about attempts."""

    def timeout(self) -> float:
        """For the next request. Raises Abandoned if there must not be one."""
        ...

    def pause(self, seconds: float, error: TraceTallyError, retries: int) -> None:
        """Waits before the next attempt. Raises Abandoned if there must not be one."""
        ...


def new_idempotency_key() -> str:
    # Not from `random`: forked processes could share its state.
    return os.urandom(16).hex()


def deliver(
    items: Sequence[bytes],
    transport: Transport,
    settings: Settings,
    attempts: Attempts,
    settle: Callable[[int, Outcome], None],
) -> None:
    """Sends the traces, in pieces if they are too large. Each is settled once, unless the client gives up on all of them."""
    try:
        outcome = _stored(_send(items, transport, settings, attempts))
    except TraceTallyError as error:
        if error.status == 413 and len(items) > 1:
            middle = (len(items) + 1) // 2
            deliver(items[:middle], transport, settings, attempts, settle)
            deliver(items[middle:], transport, settings, attempts, settle)
            return
        outcome = _not_stored(len(items), error)
    settle(len(items), outcome)


def _send(items: Sequence[bytes], transport: Transport, settings: Settings, attempts: Attempts) -> dict[str, Any]:
    body = transport.pack(b'{"traces":[' + b",".join(items) + b"]}")
    # One key for all attempts of this piece, so that it is stored once no matter how often it arrives.
    key = new_idempotency_key()
    started = time.monotonic()
    retries = 0
    while True:
        try:
            reply = transport.post(_BATCH_PATH, body, key, attempts.timeout())
            if not _is_reply(reply, len(items)):
                raise bad_reply(201)
            return reply
        except TraceTallyError as error:
            age = time.monotonic() - started
            wait = _pause_seconds(error, retries, age, settings)
            if wait is None or age + wait > IDEMPOTENCY_SECONDS:
                raise
            attempts.pause(wait, error, retries)
        retries += 1


def _is_reply(reply: dict[str, Any], count: int) -> bool:
    traces, rejected = reply.get("traces"), reply.get("rejected")
    return isinstance(traces, list) and isinstance(rejected, list) and len(traces) + len(rejected) == count


def _pause_seconds(error: TraceTallyError, retries: int, age: float, settings: Settings) -> float | None:
    """
    How long to wait before the next attempt; None to give up. A 500 is a bug in the server that waiting does not fix, so
    it is retried only a few times and does not block the batches behind it.
    """
    left = settings.max_retry_age_seconds - age
    if not may_pass(error) or left <= 0 or (error.status == 500 and retries >= settings.max_retries):
        return None
    # If the server asks for a longer delay, the last attempt is made at the maximum age.
    return min(left, pause_seconds(retries, error.retry_after_seconds, settings))


def pause_seconds(retries: int, retry_after: float | None, settings: Settings) -> float:
    """A random delay below a bound that doubles, so that clients that failed together do not retry together."""
    if retry_after is not None:
        return retry_after + random.random() * settings.retry_delay_seconds
    bound = settings.retry_delay_seconds * 2.0 ** min(retries, 30)
    return random.random() * min(settings.retry_delay_max_seconds, bound)


def _stored(reply: dict[str, Any]) -> Outcome:
    rejected: list[Any] = reply["rejected"]
    return Outcome(len(reply["traces"]), len(rejected), 0, _rejection(rejected) if rejected else None)


def _rejection(rejected: Sequence[Any]) -> TraceTallyError:
    errors: list[FieldError] = []
    for item in rejected:
        match item:
            case {"index": int(index), "errors": [*found]}:
                for each in found:
                    match each:
                        case {"field": str(name), "message": str(message)}:
                            errors.append({"field": f"traces.{index}.{name}", "message": message})
                        case _:
                            pass
            case _:
                pass
    return TraceTallyError(
        f"The server rejected {traces_in_words(len(rejected))} of a batch and stored the other traces.",
        code="traces_rejected",
        status=201,
        errors=errors,
    )


def _not_stored(count: int, error: TraceTallyError) -> Outcome:
    is_rejection = error.code == "invalid_input" or error.status == 413
    consequence = f"{'Rejected' if is_rejection else 'Gave up on'} {traces_in_words(count)}"
    reported = error.with_consequence(consequence)
    return Outcome(0, count, 0, reported) if is_rejection else Outcome(0, 0, count, reported)
