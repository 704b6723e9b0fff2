"""A conversation: what every request carries, and what a streamed chunk costs."""

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
from hermes_agent.providers.scripted_server import ScriptServer
from hermes_agent.toolbox import Toolbox
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from surroundings import Surroundings

CHUNKS: Final = 2_000
ROUNDS: Final = 20
CHARACTERS: Final = 4  # to a token, roughly, of English and of JSON
MOST_TOKENS: Final = 2_500
SERVER: Final = Path(__file__).resolve().parent / "serve_script.py"


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark."""
    with around.home():
        carried = _carried(around)
    return [*carried, *_chunks(around)]


def _tokens(value: object) -> float:
    return len(value if isinstance(value, str) else json.dumps(value)) / CHARACTERS


def _carried(around: Surroundings) -> list[Figure]:
    """The request that goes out for "hello", in a folder without anything in it."""
    with (
        around.folder() as folder,
        ScriptServer(ModelScript.parse("steps: [{say: Hello.}]")) as server,
        SessionDB() as db,
    ):
        wish = ConversationOptions(model=f"{server.base_url}#m", cwd=folder)
        talk = agent_factory.build_agent(db, NonInteractivePrompter(), wish)
        list(talk.agent.turn("hello"))
        talk.close()
    sent = server.requests[0]
    return [
        Figure('request for "hello"', _tokens(sent), "tokens", limit=MOST_TOKENS),
        Figure("  of it the system prompt", _tokens(sent["messages"][0]["content"]), "tokens"),
        Figure("  of it the tools", _tokens(sent["tools"]), "tokens"),
    ]


def _chunks(around: Surroundings) -> list[Figure]:
    """CPU of all our threads for each chunk, from the socket to the event, stored on the way."""
    with (
        served() as address,
        around.folder() as folder,
        SessionDB(folder / "state.db") as db,
        httpx2.Client(timeout=60) as client,
    ):

        def listen() -> int:
            return _bare(client, address)

        def talk() -> int:
            provider = OpenAICompatible("m", address)
            agent = AIAgent(db, FallbackProvider([provider]), Toolbox([]), cwd=folder)
            shown = sum(isinstance(event, TextDelta) for event in agent.turn("go"))
            agent.close()
            return shown

        pairs = [(_cost(listen), _cost(talk)) for _ in range(around.rounds(ROUNDS) + 1)][1:]
    bare, ours = (median(own) for own in zip(*pairs, strict=True))
    ratio = median([one / base for base, one in pairs])
    return [Figure("streamed chunk, CPU", ours, "µs", bare, measured_ratio=ratio)]


def _bare(client: httpx2.Client, address: str) -> int:
    """Read the same stream with the HTTP client alone; how many chunks had text."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}], "stream": True}
    with client.stream("POST", f"{address}/chat/completions", json=body) as response:
        return sum('"content"' in line for line in response.iter_lines())


def _cost(stream: Callable[[], int]) -> float:
    """Microseconds of CPU for each chunk of a stream."""
    began = time.process_time()
    shown = stream()
    spent = time.process_time() - began
    assert shown == CHUNKS, shown
    return spent * 1e6 / CHUNKS


@contextmanager
def served(words: int = CHUNKS) -> Iterator[str]:
    """A model in another process, whose CPU is not ours; its address."""
    command = [sys.executable, str(SERVER), str(words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()
