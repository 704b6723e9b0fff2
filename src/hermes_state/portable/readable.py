"""Conversations prepared for reading: shared by the Markdown and HTML exports."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes_core.messages import plain_text, preview, without_memory_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.messages.rows import MessageRow
    from hermes_state.store import SessionDB

UNTITLED: Final = "untitled conversation"


class Redacts(Protocol):
    """Removes secrets."""

    def text(self, text: str) -> str:
        """*text* without secrets."""
        ...

    def value(self, value: Any) -> Any:
        """A decoded value without secrets."""
        ...


class NoRedaction:
    """Removes nothing."""

    def text(self, text: str) -> str:
        return text

    def value(self, value: Any) -> Any:
        return value


@dataclass
class ReadableMessage:
    """A message: role, time, text and tool calls."""

    role: str
    name: str
    at: str
    text: str
    reasoning: str = ""
    marks: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_tool(self) -> bool:
        """Whether the message is a tool result."""
        return self.role == "tool"


@dataclass
class ReadableConversation:
    """A session ready to be written; its messages are read lazily."""

    title: str
    facts: list[tuple[str, str]]
    prompt: str
    messages: Callable[[], Iterator[ReadableMessage]]


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading conversations."""

    db: SessionDB
    redactor: Redacts = field(default_factory=NoRedaction)
    with_undone: bool = False

    def conversation(self, session_id: str) -> ReadableConversation | None:
        """A session, or None if it does not exist."""
        session = self.db.sessions.find(session_id)
        if session is None:
            return None
        text = self.redactor.text
        shown = {
            "id": session.id,
            "source": session.source,
            "model": session.model,
            "folder": session.cwd,
            "comes from": session.parent_session_id,
        }
        facts = [(label, text(str(value))) for label, value in shown.items() if value]
        facts.append(("started", format_time(session.started_at)))
        if session.ended_at is not None:
            reason = f" ({session.end_reason})" if session.end_reason else ""
            facts.append(("ended", format_time(session.ended_at) + reason))
        title = text(session.title or self._preview(session_id)) or UNTITLED
        prompt = text(session.system_prompt or "")
        return ReadableConversation(title, facts, prompt, lambda: self._messages(session_id))

    def _preview(self, session_id: str) -> str:
        messages = self.db.messages.shown(session_id)
        contents = (message.content for message in messages if message.role == "user")
        return preview(self.redactor.value(next(contents, "")))

    def _messages(self, session_id: str) -> Iterator[ReadableMessage]:
        for message in self.db.messages.shown(session_id, with_undone=self.with_undone):
            yield self._message(message)

    def _message(self, message: MessageRow) -> ReadableMessage:
        redact = self.redactor
        marks = ["undone"] if message.is_undone else []
        marks += ["interrupted"] if message.finish_reason == "interrupted" else []
        marks += ["deleted by sender"] if message.is_deleted else []
        calls = message.tool_calls
        return ReadableMessage(
            role=message.shown_role or "?",
            name=message.tool_name or "",
            at=format_time(message.timestamp),
            text=without_memory_blocks(plain_text(redact.value(message.content))).strip("\n"),
            reasoning=redact.text(message.reasoning or message.reasoning_content or "").strip("\n"),
            marks=marks,
            calls=[_format_call(redact.value(call)) for call in calls]
            if isinstance(calls, list)
            else [],
        )


def _format_call(call: Any) -> tuple[str, str]:
    """Name and arguments of a tool call; JSON arguments are indented."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        function = call if isinstance(call, dict) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(function.get("name") or "unnamed tool"), arguments
    formatted = "" if arguments is None else json.dumps(arguments, indent=2, ensure_ascii=False)
    return str(function.get("name") or "unnamed tool"), formatted


def format_time(at: Any) -> str:
    """A stored time in the local zone; '-' for an invalid value."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(at)))
    except (TypeError, ValueError, OverflowError, OSError):
        return "-"


def to_utf8(text: str) -> bytes:
    """*text* as UTF-8; lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace")
