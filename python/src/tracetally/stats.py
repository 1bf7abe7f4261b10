from __future__ import annotations

from typing import NamedTuple


class Stats(NamedTuple):
    """Counts of the recorded calls by outcome. The first five add up to all of them."""

    queued: int
    """Waiting or in flight."""
    sent: int
    """Stored by the server."""
    dropped: int
    """Not accepted: the queue was full or the client was closed."""
    rejected: int
    """Rejected by the server as invalid or too large, or not convertible to JSON."""
    failed: int
    """The client gave up on them: the server could not be reached for too long, or did not accept the API key."""
    retries: int
    """Retries of all batches."""
