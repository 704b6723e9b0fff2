"""Conversations prepared for reading: shared by the Markdown and HTML exports."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes_core.messages import plain_text, preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.store import SessionDB

SHOWN_COLUMNS: Final = ("id", "source", "model", "cwd", "parent_session_id")
LABELS: Final = {"cwd": "folder", "parent_session_id": "comes from"}
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
        session = self.db.get_session(session_id)
        if session is None:
            return None
        text = self.redactor.text
        facts = [(LABELS.get(name, name), text(str(session[name])))
                 for name in SHOWN_COLUMNS if session.get(name)]  # fmt: skip
        facts.append(("started", format_time(session.get("started_at"))))
        if session.get("ended_at") is not None:
            reason = session.get("end_reason")
            facts.append(
                ("ended", format_time(session["ended_at"]) + (f" ({reason})" if reason else ""))
            )
        title = text(session.get("title") or self._preview(session_id)) or UNTITLED
        prompt = text(str(session.get("system_prompt") or ""))
        return ReadableConversation(title, facts, prompt, lambda: self._messages(session_id))

    def _preview(self, session_id: str) -> str:
        messages = self.db.messages.iter_messages(session_id)
        contents = (message["content"] for message in messages if message.get("role") == "user")
        return preview(self.redactor.value(next(contents, "")))

    def _messages(self, session_id: str) -> Iterator[ReadableMessage]:
        for message in self.db.messages.iter_messages(session_id, True):
            is_undone = not message.get("active", 1) and not message.get("compacted")
            if is_undone and not self.with_undone:
                continue
            yield self._message(message, is_undone=is_undone)

    def _message(self, message: dict[str, Any], *, is_undone: bool) -> ReadableMessage:
        redact = self.redactor
        marks = ["undone"] if is_undone else []
        marks += ["interrupted"] if message.get("finish_reason") == "interrupted" else []
        reasoning = message.get("reasoning") or message.get("reasoning_content") or ""
        calls = message.get("tool_calls")
        return ReadableMessage(
            role=str(message.get("role") or "?"),
            name=str(message.get("tool_name") or ""),
            at=format_time(message.get("timestamp")),
            text=plain_text(redact.value(message.get("content"))).strip("\n"),
            reasoning=redact.text(str(reasoning)).strip("\n"),
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
