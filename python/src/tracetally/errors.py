"""The error of this package, and how background problems reach the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

OnError = Callable[[Exception], object]


class FieldError(TypedDict):
    """What is wrong with one field of a trace."""

    field: str
    message: str


class TraceTallyError(Exception):
    """A request that failed, or a trace that was not stored. It never contains a prompt or an answer."""

    def __init__(
        self,
        detail: str,
        *,
        code: str,
        status: int | None = None,
        errors: Sequence[FieldError] = (),
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        fields = "; ".join(f"{error['field']} {error['message']}" for error in errors[:5])
        more = f" ({fields})" if fields else ""
        super().__init__(f"{detail}{more}")
        self.detail = detail
        self.code = code
        """From docs/errors.md, or one of the client's own (docs/python.md)."""
        self.status = status
        self.errors = list(errors)
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds

    def with_consequence(self, consequence: str) -> TraceTallyError:
        """The same error, introduced by what it means for the traces."""
        return TraceTallyError(
            f"{consequence}. {self.detail}",
            code=self.code,
            status=self.status,
            errors=self.errors,
            request_id=self.request_id,
            retry_after_seconds=self.retry_after_seconds,
        )


def traces_in_words(count: int) -> str:
    return "1 trace" if count == 1 else f"{count:,} traces"


class Reporter:
    """Passes problems to the caller's `on_error` function. Its methods never raise."""

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error
        self._reported: set[str] = set()

    def report(self, error: Exception) -> None:
        try:
            self._on_error(error)
        except Exception:  # A failing hook must not reach the caller's code.
            pass

    def report_once(self, error: TraceTallyError) -> None:
        """Reports each code once."""
        if error.code in self._reported:
            return
        self._reported.add(error.code)
        self.report(error)


def log_warning(error: Exception) -> None:
    """The default for `on_error`: a warning of the logger `tracetally`, which Python prints if logging is not set up."""
    import logging

    logging.getLogger("tracetally").warning("TraceTally: %s", error)
