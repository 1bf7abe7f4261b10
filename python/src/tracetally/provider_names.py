"""The names of providers, as OpenTelemetry writes them. Prices depend on them."""

from __future__ import annotations

from typing import Any

_BY_CLASS = {
    "Azure": "azure.ai.openai",
    "Foundry": "azure.ai.inference",
    "Bedrock": "aws.bedrock",
    "Vertex": "gcp.vertex_ai",
}
_BY_HOST = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "openai.azure.com": "azure.ai.openai",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.mistral.ai": "mistral_ai",
    "api.x.ai": "x_ai",
    "api.perplexity.ai": "perplexity",
    "api.cerebras.ai": "cerebras",
    "api.together.xyz": "together",
    "api.fireworks.ai": "fireworks",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "amazonaws.com": "aws.bedrock",
}


def provider_of(client: Any, usual: str) -> str:
    """By the class of the client, then by the host that it calls; otherwise the usual one of its SDK."""
    for base in type(client).__mro__:
        for part, name in _BY_CLASS.items():
            if part in base.__name__:
                return name
    host = getattr(getattr(client, "base_url", None), "host", "") or ""
    for known, name in _BY_HOST.items():
        if host == known or host.endswith(f".{known}"):
            return name
    return usual
