"""`session_search` finds what was said before, `session_read` shows what stands around it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    number,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)
from hermes_core.messages import plain_text
from hermes_state.search.hits import ANY_WORD

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject
    from hermes_state.messages.rows import MessageRow
    from hermes_state.search.hits import FoundMessage, SearchAnswer

MAX_RESULT_BYTES: Final = 4_400  # about 1,100 tokens
MAX_QUOTATIONS: Final = 2  # of a conversation
MAX_READ_CHARACTERS: Final = 800  # of a message
SEARCHED_MESSAGES: Final = 100


class SearchesHistory(Protocol):
    """What the tools ask of the store."""

    def answer(self, query: str, *, limit: int, beside: str = "") -> SearchAnswer:
        """Messages that answer *query*; not those the session *beside* shows."""
        ...

    def around(self, message_id: int) -> list[MessageRow]:
        """A message with those before and after it; none if it may not be read."""
        ...

    def get_session_title(self, session_id: str) -> str | None:
        """The title of a conversation."""
        ...


def history_tools(history: SearchesHistory) -> list[Tool]:
    """The tools that find and read what was said before."""
    return [
        Tool(
            "session_search",
            'Find what was said in earlier sessions: a question, "phrase", prefix*, a OR b, -not.',
            schema(
                "query",
                query=parameter("string"),
                skip=parameter("integer", "for the next page"),
            ),
            reporting_errors(
                lambda arguments, context: _search(history, arguments, context.session_id)
            ),
            always_reads,
        ),
        Tool(
            "session_read",
            "Read the messages around a result.",
            schema("message", message=parameter("integer")),
            reporting_errors(lambda arguments, _context: _read(history, arguments)),
            always_reads,
        ),
    ]


def _search(history: SearchesHistory, arguments: JsonObject, current_id: str) -> str:
    query = text(arguments, "query").strip()
    if not query:
        raise ToolError("`query` is empty.")
    skip = number(arguments, "skip", 0, 0, SEARCHED_MESSAGES)
    answer = history.answer(query, limit=SEARCHED_MESSAGES, beside=current_id)
    groups: dict[str, list[FoundMessage]] = {}
    for hit in answer.hits:
        groups.setdefault(hit.session_id, []).append(hit)
    blocks: list[str] = []
    size, left = 0, list(groups.items())[skip:]
    for session_id, hits in left:
        block = _conversation(history.get_session_title(session_id) or "", hits, answer)
        size += len(block.encode())
        if blocks and size > MAX_RESULT_BYTES:
            break
        blocks.append(block)
    if not blocks:
        return success(results="No matching messages.")
    more = len(left) - len(blocks)
    end = f"\n\n{more} more conversations: skip {skip + len(blocks)}." if more else ""
    return success(results="\n\n".join([*_notes(answer), *blocks]) + end)


def _notes(answer: SearchAnswer) -> list[str]:
    notes = [
        f"Nothing contains {written!r}: used {used!r}." for written, used in answer.corrections
    ]
    if answer.step == ANY_WORD:
        notes.append(f"Best first, for any of: {', '.join(answer.words)}.")
    return notes


def _conversation(title: str, hits: list[FoundMessage], answer: SearchAnswer) -> str:
    first = hits[0]
    name = f"session {first.session_id} ({first.source})"
    lines = [f"{name} {title}".rstrip()]
    for hit in hits[:MAX_QUOTATIONS]:
        count = f" [{hit.words_found} of {len(answer.words)} words]" if hit.words_found else ""
        lines.append(
            f"  message {hit.id}, {_date(hit.timestamp)}, {hit.role}{count}: {hit.snippet_text}"
        )
    if len(hits) > MAX_QUOTATIONS:
        lines.append(f"  and {len(hits) - MAX_QUOTATIONS} more")
    return "\n".join(lines)


def _date(moment: float | None) -> str:
    return datetime.fromtimestamp(moment or 0, UTC).strftime("%Y-%m-%d %H:%M")


def _read(history: SearchesHistory, arguments: JsonObject) -> str:
    message_id = number(arguments, "message", 0, 1, 2**62)
    rows = history.around(message_id)
    if not rows:
        raise ToolError(f"No message {message_id} in a conversation that can be read.")
    return success(messages="\n\n".join(map(_message, rows)))


def _message(row: MessageRow) -> str:
    said = plain_text(row.content)
    if len(said) > MAX_READ_CHARACTERS:
        said = f"{said[:MAX_READ_CHARACTERS]}… ({len(said):,} characters)"
    return f"message {row.id}, {_date(row.timestamp)}, {row.role}: {said}"
