from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from .call import Recorder
from .provider_names import provider_of
from .provider_openai import read_chat_request, read_embeddings_request
from .provider_openai_responses import read_responses_request
from .stainless import wrap_client

C = TypeVar("C")

_ROUTES = {
    "/chat/completions": read_chat_request,
    "/responses": read_responses_request,
    "/embeddings": read_embeddings_request,
}


def wrap_openai(recorder: Recorder, client: C, labels: Mapping[str, Any]) -> C:
    return wrap_client(recorder, client, labels, _ROUTES, provider_of(client, "openai"))
