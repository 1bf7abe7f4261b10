"""The client: records AI calls in TraceTally."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import labels as _labels
from .call import Trace, size_of
from .errors import Reporter, TraceTallyError
from .labels import LabelScope, check_labels
from .measure import Measure, MeasuredCall, current_call
from .prepare import trace_of
from .settings import Options, read_settings
from .stats import Stats

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .fields import TraceFields
    from .labels import Labels
    from .recorder import ClientRecorder

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


class TraceTally:
    """
    Records AI calls in TraceTally. One client per process is enough. It opens no connection before its first trace.

    `TraceTally()` reads the API key and the URL from the environment variables `TRACETALLY_API_KEY` and `TRACETALLY_URL`.
    Without a key it warns once and records nothing: wrapped clients call the provider as usual.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        settings = read_settings(options)
        reporter = Reporter(settings.on_error)
        self._recorder: ClientRecorder | None = None
        if settings.enabled and settings.api_key is not None:
            # Imported here and not by the first call: a fork must not happen in the middle of an import of another thread.
            from .recorder import ClientRecorder

            self._recorder = ClientRecorder(settings, reporter)
        elif settings.enabled:
            detail = (
                "AI calls are not recorded because there is no API key. Set TRACETALLY_API_KEY or the option api_key."
            )
            reporter.report_once(TraceTallyError(detail, code="no_api_key"))

    # --- Wrappers ---

    def wrap_openai(self, client: C, **labels: Unpack[Labels]) -> C:
        """
        The same OpenAI client (plain, async or Azure), with its chat completions, responses and embeddings recorded
        under the labels. Cheap enough to call for each user.
        """
        check_labels(labels)
        if self._recorder is None:
            return client
        from .wrap_openai import wrap_openai

        return wrap_openai(self._recorder, client, labels)

    def wrap_anthropic(self, client: C, **labels: Unpack[Labels]) -> C:
        """The same Anthropic client (plain, async, Bedrock or Vertex), with its messages recorded under the labels."""
        check_labels(labels)
        if self._recorder is None:
            return client
        from .wrap_anthropic import wrap_anthropic

        return wrap_anthropic(self._recorder, client, labels)

    def wrap_google_genai(self, client: C, **labels: Unpack[Labels]) -> C:
        """The same Google Gen AI client, with its generated content and embeddings recorded under the labels."""
        check_labels(labels)
        if self._recorder is None:
            return client
        from .google import wrap_google_genai

        return wrap_google_genai(self._recorder, client, labels)

    def litellm_logger(self, **labels: Unpack[Labels]) -> Any:
        """A logger that records the calls of LiteLLM: `litellm.callbacks = [tally.litellm_logger()]`."""
        check_labels(labels)
        from .litellm_logger import litellm_logger

        return litellm_logger(self._recorder, labels)

    def langchain_handler(self, **labels: Unpack[Labels]) -> Any:
        """A callback handler that records the model calls of LangChain: `config={"callbacks": [tally.langchain_handler()]}`."""
        check_labels(labels)
        from .langchain_handler import langchain_handler

        return langchain_handler(self._recorder, labels)

    # --- Other calls ---

    def measure(self, model: str, *, input: object = None, **labels: Unpack[Labels]) -> Measure:
        """
        Records a block (`with tally.measure("my-model") as call:`) or every call of a function (`@tally.measure("my-model")`).
        `call.set(…)` says what became known; in a function, `tally.current_call().set(…)` does.
        """
        return Measure(self._recorder, model, input, labels)

    def current_call(self) -> MeasuredCall:
        """The innermost measured call of this thread or task; outside of one, a call that is not recorded."""
        return current_call()

    def enqueue(self, **fields: Unpack[TraceFields]) -> None:
        """Records a call in the background. Never raises and never waits. The fields are the same as in `POST /traces`."""
        recorder = self._recorder
        if recorder is None or not recorder.wants_call():
            return
        try:
            trace = trace_of({**_label_fields(), **fields})
            recorder.enqueue(trace, size_of(trace))
        except Exception as error:
            recorder.report(error)

    def record(self, **fields: Unpack[TraceFields]) -> Trace | None:
        """
        Stores a call now and returns it as stored. Temporary failures are retried; it is stored once. Raises a
        TraceTallyError if the server rejects it or cannot be reached. Returns None if the client records nothing.
        """
        recorder = self._recorder
        return None if recorder is None else recorder.store_now(trace_of({**_label_fields(), **fields}))

    async def arecord(self, **fields: Unpack[TraceFields]) -> Trace | None:
        """`record` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(lambda: self.record(**fields))

    # --- Labels ---

    def labels(self, **labels: Unpack[Labels]) -> LabelScope:
        """
        `with tally.labels(user="u-17"):` applies labels to all calls in the block, and in the tasks that begin in it. They
        replace those of a wrapped client. Threads do not inherit them: see `bind`.
        """
        check_labels(labels)
        return LabelScope(labels)

    def bind(self, function: F) -> F:
        """The function with the labels that apply now, for a thread: `executor.submit(tally.bind(work), item)`."""
        return _labels.bind(function)

    # --- The end ---

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until every call so far is stored, or the client has given up on it. False if the time was too short."""
        return True if self._recorder is None else self._recorder.sender.flush(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:
        """`flush` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.flush, timeout)

    def close(self) -> None:
        """Sends what is queued, then accepts no more. A process that ends normally does not need to call it."""
        if self._recorder is not None:
            self._recorder.sender.close()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        import asyncio

        await asyncio.to_thread(self.close)

    def stats(self) -> Stats:
        """Counts of the calls by outcome, in this process."""
        return Stats(0, 0, 0, 0, 0, 0) if self._recorder is None else self._recorder.sender.stats()

    def __enter__(self) -> TraceTally:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> TraceTally:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _label_fields() -> Trace:
    labels = _labels.current_labels()
    names = {
        "feature_name": "feature",
        "user_identifier": "user",
        "session_id": "session",
        "run_id": "run",
        "provider": "provider",
    }
    return {name: labels[label] for name, label in names.items() if label in labels}
