"""Tool calls of a session with their results, in order and each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.messages import plain_text
from hermes_state.engine.values import amount_sql
from hermes_state.messages.rows import decode_content, decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_core.json_values import JsonObject
    from hermes_state.engine.transaction import Reader

# Copies that a compaction or a branch made are left out.
ROWS: Final = f"""
    SELECT m.id, m.role, m.content, m.tool_calls, m.tool_call_id, {amount_sql("m.timestamp")}
    FROM messages m
    WHERE m.session_id = ? AND m.id > ?
        AND (m.tool_calls IS NOT NULL OR m.role IN ('tool', 'user'))
        AND NOT EXISTS (SELECT 1 FROM hermes_copy c WHERE c.message_id = m.id)
    ORDER BY m.id
"""  # noqa: S608 - own names


class RecordedCall(NamedTuple):
    """A call, and its result if there is one."""

    session_id: str
    message_id: int  # of the message that called
    place: int  # among the calls of that message
    at: float
    name: str
    arguments: JsonObject
    result_id: int | None = None
    result: str = ""
    prompt_id: int = 0  # the message of a person before it; 0 if that was read earlier


class CallSlice(NamedTuple):
    """Calls of a session, and the row after which reading continues."""

    calls: list[RecordedCall]
    through: int


def read_calls(reader: Reader, session_id: str, after: int) -> CallSlice:
    """The calls after a row. Those of the last message may still run: they are read again."""
    waiting: dict[str, RecordedCall] = {}
    done: list[RecordedCall] = []
    through, prompt_id = after, 0
    for row_id, role, content, calls, call_id, at in reader.rows(ROWS, (session_id, after)):
        if role == "tool":
            call = waiting.pop(call_id or "", None)
            if call is not None:
                text = plain_text(decode_content(content))
                done.append(call._replace(result_id=row_id, result=text))
            if not waiting:
                through = row_id
            continue
        if role == "user":
            prompt_id = row_id
            continue
        done += waiting.values()  # their process ended before they did
        found = _calls(session_id, row_id, calls, at)
        waiting = {key: call._replace(prompt_id=prompt_id) for key, call in found}
        through = row_id if not waiting else row_id - 1
    if any(call.result_id is None for call in waiting.values()):
        done = [call for call in done if call.message_id <= through]
    return CallSlice(done, through)


def _calls(
    session_id: str, row_id: int, tool_calls: object, at: float
) -> Iterator[tuple[str, RecordedCall]]:
    calls = decode_json(tool_calls)
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = decode_json(function.get("arguments"))
        name = function.get("name")
        if isinstance(arguments, dict) and isinstance(name, str):
            key = call.get("id") or call.get("call_id") or f"{row_id}-{place}"
            yield str(key), RecordedCall(session_id, row_id, place, at, name, arguments)
