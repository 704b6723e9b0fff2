"""A conversation: size of a request, and cost of a streamed chunk."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2

from figures import Figure, median
from hermes_agent.agent import AIAgent, NonInteractivePrompter
from hermes_agent.events import TextDelta
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.providers.retry import FallbackProvider
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.toolbox import Toolbox
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from surroundings import BenchmarkContext

CHUNKS: Final = 2_000
ROUNDS: Final = 20
CHARACTERS_PER_TOKEN: Final = 4  # approximately, for English and JSON
MAX_REQUEST_TOKENS: Final = 2_500
TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
SERVER_SCRIPT: Final = Path(__file__).resolve().parent / "serve_script.py"


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    with context.home():
        request_figures = _request_figures(context)
    return [*request_figures, *_chunk_figures(context)]


def _tokens(value: object) -> float:
    return len(value if isinstance(value, str) else json.dumps(value)) / CHARACTERS_PER_TOKEN


def _request_figures(context: BenchmarkContext) -> list[Figure]:
    """The request for "hello" in an empty folder."""
    sys.path.append(str(TESTS))
    from support.scripted_server import ScriptServer  # noqa: PLC0415 - after sys.path

    with (
        context.folder() as folder,
        ScriptServer(ModelScript.parse("steps: [{say: Hello.}]")) as server,
        SessionDB() as db,
    ):
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=folder)
        bundle = agent_factory.build_agent(db, NonInteractivePrompter(), options)
        list(bundle.agent.turn("hello"))
        bundle.close()
    sent = server.requests[0]
    return [
        Figure('request for "hello"', _tokens(sent), "tokens", limit=MAX_REQUEST_TOKENS),
        Figure("  of it the system prompt", _tokens(sent["messages"][0]["content"]), "tokens"),
        Figure("  of it the tools", _tokens(sent["tools"]), "tokens"),
    ]


def _chunk_figures(context: BenchmarkContext) -> list[Figure]:
    """CPU time of all threads per chunk, from the socket to the event, including storage."""
    with (
        served() as address,
        context.folder() as folder,
        SessionDB(folder / "state.db") as db,
        httpx2.Client(timeout=60) as client,
    ):

        def read_stream() -> int:
            return _bare(client, address)

        def run_turn() -> int:
            provider = OpenAICompatible("m", address)
            agent = AIAgent(db, FallbackProvider([provider]), Toolbox([]), cwd=folder)
            shown = sum(isinstance(event, TextDelta) for event in agent.turn("go"))
            agent.close()
            return shown

        pairs = [(_cost(read_stream), _cost(run_turn)) for _ in range(context.rounds(ROUNDS) + 1)][
            1:
        ]
    bare, agent_cost = (median(costs) for costs in zip(*pairs, strict=True))
    ratio = median([cost / base for base, cost in pairs])
    return [Figure("streamed chunk, CPU", agent_cost, "µs", bare, measured_ratio=ratio)]


def _bare(client: httpx2.Client, address: str) -> int:
    """Read the same stream with the HTTP client alone; returns the number of text chunks."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}], "stream": True}
    with client.stream("POST", f"{address}/chat/completions", json=body) as response:
        return sum('"content"' in line for line in response.iter_lines())


def _cost(stream: Callable[[], int]) -> float:
    """CPU microseconds per chunk of a stream."""
    started = time.process_time()
    chunks = stream()
    seconds = time.process_time() - started
    assert chunks == CHUNKS, chunks
    return seconds * 1e6 / CHUNKS


@contextmanager
def served(words: int = CHUNKS) -> Iterator[str]:
    """A model in another process, whose CPU time is not measured; yields its URL."""
    command = [sys.executable, str(SERVER_SCRIPT), str(words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()
