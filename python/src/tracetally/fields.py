"""The fields of a trace, for type checkers. The server checks the values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypedDict

from typing_extensions import Required


class TraceFields(TypedDict, total=False):
    """What `record` and `enqueue` accept: the fields of `POST /traces` (docs/api.md)."""

    model: Required[str]
    input: object
    """Text, or anything that can be converted to JSON."""
    output: object
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int | None
    cost_usd: float | None
    """Left out: the server computes it from the tokens."""
    status: Literal["success", "error"] | None
    error_message: str | None
    feature_name: str | None
    user_identifier: str | None
    response_model: str | None
    started_at: datetime | str | None
    environment: str | None
    provider: str | None
    session_id: str | None
    run_id: str | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    ttft_ms: int | None
    error_type: str | None
    metadata: Mapping[str, str] | None
