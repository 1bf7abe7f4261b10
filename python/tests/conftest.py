from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "sdks"))
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

pytest.register_assert_rewrite("support")

from fake_provider import FakeProvider

from support import Recorded, Server, fresh_feature
from tracetally import TraceTally


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The real server, in a process of its own."""
    with Server() as running:
        yield running


@pytest.fixture(scope="session")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


@pytest.fixture
def errors() -> list[Exception]:
    """What the client reported."""
    return []


@pytest.fixture
def tally(server: Server, errors: list[Exception]) -> Iterator[TraceTally]:
    with TraceTally(api_key=server.key, base_url=server.url, on_error=errors.append) as client:
        yield client


@pytest.fixture
def recorded(server: Server, tally: TraceTally, errors: list[Exception]) -> Recorded:
    """The traces of this test, as the server stored them, which all have its feature."""
    return Recorded(server, tally, errors, fresh_feature())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the fault tests for longer")
