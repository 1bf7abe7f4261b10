"""Records AI calls in TraceTally: one line for OpenAI, Anthropic, Google, LiteLLM and LangChain. See docs/python.md."""

from .client import TraceTally
from .errors import TraceTallyError
from .measure import Measure, MeasuredCall
from .stats import Stats

__all__ = ["Measure", "MeasuredCall", "Stats", "TraceTally", "TraceTallyError"]
__version__ = "0.1.0"
