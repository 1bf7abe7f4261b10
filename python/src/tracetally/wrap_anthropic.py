from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from .call import Recorder
from .provider_anthropic import read_messages_request
from .provider_names import provider_of
from .stainless import wrap_client

C = TypeVar("C")


def wrap_anthropic(recorder: Recorder, client: C, labels: Mapping[str, Any]) -> C:
    return wrap_client(
        recorder, client, labels, {"/v1/messages": read_messages_request}, provider_of(client, "anthropic")
    )
