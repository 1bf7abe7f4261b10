"""Records calls of any kind. Needs nothing but TraceTally. Run: TRACETALLY_API_KEY=tt_… python python/examples/measure.py"""

from __future__ import annotations

from tracetally import TraceTally

tally = TraceTally()


@tally.measure("my-model", feature="rank")
def rank(prompt: str) -> str:
    """Its argument and its result become the input and the output."""
    tally.current_call().set(prompt_tokens=len(prompt.split()), completion_tokens=1)
    return prompt.upper()


rank("which of these is best")
with tally.measure("gpt-4o", input="Hello!", feature="chat") as call:
    call.set(output="Hi, how can I help?", prompt_tokens=9, completion_tokens=7)
print(tally.record(model="gpt-4o", prompt_tokens=9, completion_tokens=7, feature_name="chat"))
