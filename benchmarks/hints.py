"""Hints from 500,000 messages: CPU time of a lookup, and of reading all tool calls once."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from figures import Figure, percentile
from hermes_agent.messages import ToolCall
from hermes_conversation.history_scope import ConversationHistory
from hermes_conversation.known_fixes import HistoryHints
from hermes_state import SessionDB
from hermes_state.calls.commands import command_run
from hermes_state.calls.history import read_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.calls.history import ToolCall as StoredCall
    from surroundings import BenchmarkContext

MAX_MS: Final = 5.0
LOOKUPS: Final = 400
FAILURES: Final = """
    SELECT session_id, folder FROM hermes_outcome WHERE kind = 'command'
    GROUP BY session_id, folder ORDER BY count(fix_id) DESC LIMIT ?
"""
BUSIEST_FILES: Final = """
    SELECT subject FROM hermes_outcome WHERE kind = 'edit'
    GROUP BY subject ORDER BY count(*) DESC LIMIT ?
"""
COUNTS: Final = "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM hermes_outcome)"


class Lookup(NamedTuple):
    """A call whose hint is looked up."""

    cwd: Path
    call: ToolCall
    result: str


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    with context.copy("hints") as path, SessionDB(path) as db:
        began = time.process_time()
        db.calls.fill()
        filling = time.process_time() - began
        messages, outcomes = db.engine.read(lambda r: r.row(COUNTS)) or (1, 0)
        count = max(10, context.rounds(LOOKUPS))
        commands = _cpu(db, list(itertools.islice(_failures(db), count)))
        files = _cpu(db, list(_reads(db, count)))
        return [
            Figure("reading calls, CPU for a message", 1e6 * filling / messages, "µs"),
            Figure("outcomes of 1,000 messages", 1000 * outcomes / messages, "rows"),
            Figure("hint after a failed command, p95 CPU", percentile(commands, 0.95), "ms",
                   limit=MAX_MS),
            Figure("hint about a busy file, p95 CPU", percentile(files, 0.95), "ms", limit=MAX_MS),
        ]  # fmt: skip


def _failures(db: SessionDB) -> Iterator[Lookup]:
    """Commands that failed, with their real results."""
    sessions = db.engine.read(lambda r: list(r.rows(FAILURES, (LOOKUPS,))))
    for session_id, folder in sessions:
        for call in db.engine.read(lambda r, name=session_id: read_calls(r, name, 0)).calls:  # type: ignore[misc]
            run = command_run(call, folder)
            if run is not None and run.is_failure:
                yield Lookup(Path(folder or "/"), _as_called(call), call.result)


def _as_called(call: StoredCall) -> ToolCall:
    return ToolCall("c", "terminal", json.dumps(call.arguments))


def _reads(db: SessionDB, count: int) -> Iterator[Lookup]:
    """Reading the files that were changed most often."""
    for (path,) in db.engine.read(lambda r: list(r.rows(BUSIEST_FILES, (count,)))):
        yield Lookup(Path("/"), ToolCall("c", "read_file", json.dumps({"path": path})), "{}")


def _cpu(db: SessionDB, lookups: list[Lookup]) -> list[float]:
    """The CPU time of each lookup in milliseconds."""
    times = []
    for lookup in lookups:
        hints = HistoryHints(db, ConversationHistory(db))
        began = time.process_time()
        hints.about("now", *lookup)
        times.append(1000 * (time.process_time() - began))
    return times or [0.0]
