"""Importing the history of another agent: CPU time, memory, and a repeated run.

The files have the mix of records that a real run of Claude Code wrote: of 154 records 22 are
of users, 26 of the model, 23 attachments, 29 requests, the rest small.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any, Final

from figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from surroundings import BenchmarkContext

MEGABYTES: Final = 1000
QUICK_MEGABYTES: Final = 4
FILES: Final = 10_000
QUICK_FILES: Final = 50
TURNS_PER_FILE: Final = 40
MAX_RATIO: Final = 3.0
MAX_MEMORY_MB: Final = 200.0
MAX_REPEAT_SECONDS: Final = 1.0
WORDS: Final = [
    "the",
    "agent",
    "reads",
    "a",
    "file",
    "and",
    "runs",
    "tests",
    "before",
    "it",
    "answers",
    "lighthouse",
    "灯塔",
    "café",
]
PLACE: Final = {
    "isSidechain": False, "userType": "external", "entrypoint": "cli", "cwd": "/home/ada/project",
    "version": "2.1.325", "gitBranch": "main",
}  # fmt: skip
PARSE: Final = """
import json, pathlib, sys, time, orjson
started = time.process_time()
for path in pathlib.Path(sys.argv[1]).rglob("*.jsonl"):
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
print(json.dumps({"seconds": time.process_time() - started}))
"""
IMPORT: Final = """
import json, pathlib, resource, sys, time
from hermes_state.engine.sqlite import driver
driver.install()
from hermes_state import SessionDB
from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry
found = SourceRegistry().found_at("claude-code", pathlib.Path(sys.argv[1]))
with SessionDB() as db:
    started = time.process_time()
    report = AgentImport(db, found.source).run(found.units())
    seconds = time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "messages": report.messages, "peak": peak}))
"""


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    megabytes = QUICK_MEGABYTES if context.is_quick else MEGABYTES
    files = QUICK_FILES if context.is_quick else FILES
    with context.home() as home:
        _write_files(home / "large", megabytes)
        parsed = _run(PARSE, home / "large")
        imported = _run(IMPORT, home / "large")
    with context.home() as home:
        _write_small_files(home / "many", files)
        _run(IMPORT, home / "many")
        again = _run(IMPORT, home / "many")
    is_full = not context.is_quick
    return [
        Figure(
            "import, CPU per GB of Claude Code files",
            1000 * imported["seconds"] / megabytes,
            "s",
            1000 * parsed["seconds"] / megabytes,
            MAX_RATIO if is_full else None,
            "ratio",
        ),
        Figure("import, CPU per message", 1e6 * imported["seconds"] / imported["messages"], "µs"),
        Figure("import, peak memory", imported["peak"], "MB", None, MAX_MEMORY_MB),
        Figure(
            f"import again, {files:,} unchanged files",
            again["seconds"],
            "s",
            None,
            MAX_REPEAT_SECONDS,
        ),
    ]


def _run(program: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _write_files(home: Path, megabytes: int) -> None:
    numbers = random.Random(7)
    written = 0
    while written < megabytes * 1e6:
        written += _write_file(home, numbers, TURNS_PER_FILE)


def _write_small_files(home: Path, count: int) -> None:
    numbers = random.Random(7)
    for _ in range(count):
        _write_file(home, numbers, 1)


def _write_file(home: Path, numbers: random.Random, turns: int) -> int:
    session_id = str(uuid.UUID(int=numbers.getrandbits(128)))
    folder = home / ".claude" / "projects" / "-home-ada-project"
    folder.mkdir(parents=True, exist_ok=True)
    clock = itertools.count(1_780_000_000)
    records = (
        {**record, "sessionId": session_id}
        for _ in range(turns)
        for record in _turn(numbers, clock)
    )
    lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in records]
    content = ("\n".join(lines) + "\n").encode()
    return (folder / f"{session_id}.jsonl").write_bytes(content)


def _text(numbers: random.Random, characters: int) -> str:
    text = " ".join(numbers.choices(WORDS, k=max(1, characters // 6)))
    return text[:characters]


def _turn(numbers: random.Random, clock: Iterator[int]) -> Iterator[dict[str, Any]]:
    """The records of a prompt, two requests of the model and a tool call between them."""

    def about(kind: str) -> dict[str, Any]:
        unique = str(uuid.UUID(int=numbers.getrandbits(128)))
        return {"type": kind, "uuid": unique, "timestamp": float(next(clock)), **PLACE}

    for operation in ("enqueue", "dequeue"):
        yield {"type": "queue-operation", "operation": operation, "content": _text(numbers, 100)}
    prompt = {"role": "user", "content": _text(numbers, 120)}
    yield {"parentUuid": None, **about("user"), "message": prompt}
    for _ in range(3):
        attachment = {"type": "environment", "text": _text(numbers, 300)}
        rendered = [{"content": _text(numbers, 1200)}]
        head = {"parentUuid": None, "isSidechain": False, "attachment": attachment}
        yield {**head, **about("attachment"), "rendered": rendered}
    yield {"type": "api-request-shape", "body": _text(numbers, 2600)}
    call_id = f"toolu_{numbers.getrandbits(64):x}"
    arguments = {"command": _text(numbers, 60)}
    call = {"type": "tool_use", "id": call_id, "name": "Bash", "input": arguments}
    yield from _answer(numbers, about, call)
    output = _text(numbers, 2400)
    result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
    message = {"role": "user", "content": [result]}
    record = {"parentUuid": None, **about("user"), "message": message}
    yield {**record, "toolUseResult": {"stdout": output, "stderr": "", "interrupted": False}}
    yield from _answer(numbers, about, {"type": "text", "text": _text(numbers, 300)})
    usage = {"model": {"inputTokens": 1, "outputTokens": 1}}
    yield {"type": "cost-state", "modelUsage": usage, "text": _text(numbers, 450)}


def _answer(
    numbers: random.Random, about: Callable[[str], dict[str, Any]], block: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    yield {"type": "api-request", "body": _text(numbers, 1400)}
    yield {"type": "api-request-blob", "body": _text(numbers, 250)}
    number = numbers.getrandbits(64)
    usage = {
        "input_tokens": 100, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 1000,
        "output_tokens": 40, "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 50},
        "service_tier": "standard", "inference_geo": "", "iterations": [], "speed": "standard",
    }  # fmt: skip
    for each in ({"type": "thinking", "thinking": _text(numbers, 80), "signature": "c2ln"}, block):
        message = {
            "id": f"msg_{number:x}", "type": "message", "role": "assistant", "model": "claude",
            "content": [each], "stop_reason": "tool_use", "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        record = {"parentUuid": None, "message": message, "requestId": f"req_{number:x}"}
        yield {**record, "requestedModel": "claude", "effort": "medium", **about("assistant")}
