"""`memory` keeps facts, `session_search` finds what was said before."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from hermes_agent.memory.files import MEMORY_KINDS, SEPARATOR, used_characters
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    choice,
    number,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)

if TYPE_CHECKING:
    from hermes_agent.memory.files import MemoryFiles
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_state.search.hits import FoundMessage

ACTIONS = ("add", "replace", "remove", "read")


class SearchesHistory(Protocol):
    """What `session_search` asks of the store."""

    def find(self, query: str, *, limit: int = 20, beside: str = "") -> list[FoundMessage]:
        """Messages that answer *query*, the newest first; not those the session *beside* shows."""
        ...

    def get_session_title(self, session_id: str) -> str | None:
        """What a conversation is called."""
        ...


def memory_tool(files: MemoryFiles) -> Tool:
    """The tool that keeps facts."""
    return Tool(
        "memory",
        "Facts for later sessions: target memory (work, environment) or user (the person). Save "
        "what the user corrects or will want next time. Keep them short: every prompt includes "
        "them.",
        schema(
            "action",
            action=parameter("string", enum=list(ACTIONS)),
            target=parameter("string", enum=list(MEMORY_KINDS)),
            text=parameter("string"),
            old=parameter("string", "piece of the entry to replace or remove"),
        ),
        reporting_errors(lambda arguments, _context: _memory(files, arguments)),
    )


def _memory(files: MemoryFiles, arguments: JsonObject) -> str:
    action = text(arguments, "action")
    target = choice(arguments, "target", tuple(MEMORY_KINDS))
    if action == "read":
        return _state(target, files.entries(target), with_entries=True)
    if action == "add":
        return _state(target, files.add(target, _entry(arguments)))
    if action == "replace":
        old = _piece(arguments, "old")
        return _state(target, files.replace(target, old, _entry(arguments)))
    if action == "remove":
        old = _piece(arguments, "old" if arguments.get("old") else "text")
        return _state(target, files.remove(target, old))
    raise ToolError(f"`action` must be one of {', '.join(ACTIONS)}.")


def _entry(arguments: JsonObject) -> str:
    entry = _piece(arguments, "text").replace("\r\n", "\n")
    if SEPARATOR in f"\n{entry}\n":
        raise ToolError("A line with only `§` separates entries; an entry cannot contain it.")
    if re.search(r"^\s*#", entry, re.MULTILINE):
        raise ToolError("A line of an entry cannot begin with `#`: it would look like a heading.")
    entry.encode()  # lone surrogates are refused before anything is changed
    return entry


def _piece(arguments: JsonObject, name: str) -> str:
    piece = text(arguments, name).strip()
    if not piece:
        raise ToolError(f"`{name}` is empty.")
    return piece


def _state(target: str, entries: list[str], *, with_entries: bool = False) -> str:
    used = f"{used_characters(entries):,} of {MEMORY_KINDS[target].characters:,} characters"
    facts: dict[str, JsonData] = {"target": target, "entries": len(entries), "used": used}
    if with_entries:
        facts["entries"] = entries
    return success(**facts)


def session_search_tool(history: SearchesHistory) -> Tool:
    """The tool that finds what was said before."""
    return Tool(
        "session_search",
        'Find what was said in earlier sessions: words, "phrases", prefix*, a OR b, -not.',
        schema("query", query=parameter("string"), limit=parameter("integer", "default 10")),
        reporting_errors(
            lambda arguments, context: _session_search(history, arguments, context.session_id)
        ),
        always_reads,
    )


def _session_search(history: SearchesHistory, arguments: JsonObject, current_id: str) -> str:
    limit = number(arguments, "limit", 10, 1, 50)
    hits = history.find(_piece(arguments, "query"), limit=limit, beside=current_id)
    titles = {hit.session_id: "" for hit in hits}
    for session_id in titles:
        titles[session_id] = history.get_session_title(session_id) or ""
    return success(results=[_hit(hit, titles[hit.session_id]) for hit in hits])


def _hit(hit: FoundMessage, title: str) -> JsonObject:
    moment = datetime.fromtimestamp(hit.timestamp or 0, UTC)
    return {
        "session": hit.session_id,
        "title": title,
        "date": moment.strftime("%Y-%m-%d %H:%M"),
        "role": hit.role,
        "text": hit.snippet_text,
    }
