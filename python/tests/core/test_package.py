"""The packages as they are published, in an empty environment."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from support import Server, fresh_feature, plain_environment

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    return folder


def test_contents(packages: Path) -> None:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(archive.read(name).decode() for name in names if name.endswith("METADATA"))
        assert sum(info.file_size for info in archive.infolist()) < 200_000
    modules = {f"tracetally/{path.name}" for path in (PROJECT / "src" / "tracetally").glob("*.py")}
    assert {name for name in names if name.startswith("tracetally/")} == {*modules, "tracetally/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "Requires-Dist" not in metadata
    (source,) = packages.glob("*.tar.gz")
    with tarfile.open(source) as archive_of_source:
        tops = {name.split("/", 2)[1] for name in archive_of_source.getnames()}
    assert tops == {"src", "README.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore"} - (
        set() if ".gitignore" in tops else {".gitignore"}
    )


def test_the_first_trace_of_a_newcomer(packages: Path, tmp_path: Path, server: Server) -> None:
    """Four lines after the installation, in an environment that has nothing else."""
    (wheel,) = packages.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--quiet", str(wheel)]
    subprocess.run(pip, check=True)
    feature = fresh_feature()
    code = f"""
from tracetally import TraceTally
tally = TraceTally(close_timeout_seconds=30)
with tally.measure("gpt-4o", input="Hello!", feature="{feature}") as call:
    call.set(output="Hi!", prompt_tokens=1000, completion_tokens=100)
"""
    environment = plain_environment(TRACETALLY_API_KEY=server.key, TRACETALLY_URL=server.url)
    del environment["PYTHONPATH"]
    done = subprocess.run([str(python), "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    (trace,) = server.traces(feature_name=feature)
    assert trace["cost_usd"] == 0.0035


SAMPLE = """
import asyncio

import openai
from tracetally import Stats, TraceTally

tally = TraceTally(api_key="tt_x", sample_rate=0.5, mask=lambda text: text.replace("a", "b"))
client: openai.OpenAI = tally.wrap_openai(openai.OpenAI(), feature="chat", user="u")
later: openai.AsyncAzureOpenAI = tally.wrap_openai(openai.AsyncAzureOpenAI(api_version="x"))
claude: str = tally.wrap_anthropic("any client", session="s", run="r")
google: str = tally.wrap_google_genai("any client", provider="gcp.vertex_ai")


@tally.measure("my-model", feature="rank")
async def rank(prompt: str) -> list[int]:
    tally.current_call().set(prompt_tokens=3)
    return [len(prompt)]


@tally.bind
def work(item: str) -> int:
    with tally.labels(user="u"), tally.measure("m", input=[item]) as call:
        call.set(output={"a": 1}, cost_usd=0.1)
    tally.enqueue(model="m", prompt_tokens=1, metadata={"tier": "gold"})
    return 1


numbers: list[int] = asyncio.run(rank("x"))
number: int = work("x")
answer = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
text: str | None = answer.choices[0].message.content
stats: Stats = tally.stats()
with TraceTally() as other:
    stored = other.record(model="m", status="success")
"""

WRONG = """
from tracetally import TraceTally

tally = TraceTally(api_kee="x")
tally.wrap_openai(object(), featur="chat")
tally.enqueue(prompt_tokens=1)
tally.record(model="m", status="failed")
"""


def test_types_of_an_app(tmp_path: Path) -> None:
    """mypy and pyright accept a correct app in their strictest modes, and find the mistakes of a wrong one."""
    (tmp_path / "sample.py").write_text(SAMPLE)
    (tmp_path / "wrong.py").write_text(WRONG)
    source = str(PROJECT / "src")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"typeCheckingMode": "strict", "extraPaths": ["{source}"]}}')

    def errors(*command: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", *command, "sample.py", "wrong.py"],
            cwd=tmp_path,
            env={**plain_environment(), "MYPYPATH": source},
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if "error:" in line]

    # What mypy finds out about the SDKs is kept, because it takes half a minute.
    cache = str(PROJECT / ".venv" / "mypy-of-the-sample")
    for command in (
        ("mypy", "--strict", "--follow-imports=silent", "--cache-dir", cache),
        ("pyright", "--pythonpath", sys.executable),
    ):
        found = errors(*command)
        assert len(found) == 4, found
        assert all("wrong.py" in line for line in found), found
