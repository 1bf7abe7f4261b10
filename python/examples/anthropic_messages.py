"""Records a message and a stream. Run: TRACETALLY_API_KEY=tt_… python python/examples/anthropic_messages.py"""

from __future__ import annotations

from anthropic import Anthropic
from fake_provider import FakeProvider

from tracetally import TraceTally

with FakeProvider() as provider, TraceTally() as tally:
    client = tally.wrap_anthropic(Anthropic(api_key="none", base_url=provider.url), feature="summaries")
    with tally.labels(user="user-17", session="conversation-5"):
        message = client.messages.create(
            model="claude-opus-5-5", max_tokens=100, messages=[{"role": "user", "content": "Hello!"}]
        )
        print(message.content)
        with client.messages.stream(
            model="claude-opus-5-5", max_tokens=100, messages=[{"role": "user", "content": "Hello again!"}]
        ) as stream:
            print(stream.get_final_text())
    tally.flush()
    print(tally.stats())
