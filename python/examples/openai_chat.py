"""Records a plain and a streamed call. Run: TRACETALLY_API_KEY=tt_… python python/examples/openai_chat.py"""

from __future__ import annotations

from fake_provider import FakeProvider
from openai import OpenAI

from tracetally import TraceTally

with FakeProvider() as provider, TraceTally() as tally:
    client = tally.wrap_openai(OpenAI(api_key="none", base_url=f"{provider.url}/v1"), feature="chat", user="user-17")
    answer = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello!"}])
    print(answer.choices[0].message.content)
    for chunk in client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "Hello again!"}], stream=True
    ):
        print(chunk.choices[0].delta.content or "", end="")
    print()
    tally.flush()
    print(tally.stats())
