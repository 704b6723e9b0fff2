"""A conversation as people read it: what Markdown and HTML pages have in common."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes_core.messages import plain_text, preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FACTS: Final = ("id", "source", "model", "cwd", "parent_session_id")
LABELS: Final = {"cwd": "folder", "parent_session_id": "comes from"}
NAMELESS: Final = "untitled conversation"


class GivesHistory(Protocol):
    """What pages ask of the store."""

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """All columns of a session, or None."""
        ...

    def iter_messages(
        self, session_id: str, include_inactive: bool = False
    ) -> Iterator[dict[str, Any]]:
        """The messages of a session, decoded, one by one."""
        ...


class Redacts(Protocol):
    """What takes secrets out."""

    def text(self, text: str) -> str:
        """A text without its secrets."""
        ...

    def value(self, value: Any) -> Any:
        """A decoded value without its secrets."""
        ...


class Reveals:
    """Takes nothing out."""

    def text(self, text: str) -> str:
        return text

    def value(self, value: Any) -> Any:
        return value


@dataclass
class ReadableMessage:
    """One message: who, when, what, and which tools were asked."""

    role: str
    name: str
    at: str
    text: str
    reasoning: str = ""
    marks: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_tool(self) -> bool:
        """Whether a tool said it."""
        return self.role == "tool"


@dataclass
class ReadableConversation:
    """One session, ready to be written; its messages are read as they are asked for."""

    title: str
    facts: list[tuple[str, str]]
    prompt: str
    said: Callable[[], Iterator[ReadableMessage]]


@dataclass(frozen=True)
class ReadOptions:
    """How conversations are read for a page."""

    db: GivesHistory
    redactor: Redacts = field(default_factory=Reveals)
    with_undone: bool = False

    def conversation(self, session_id: str) -> ReadableConversation | None:
        """A session, or None if there is none."""
        session = self.db.get_session(session_id)
        if session is None:
            return None
        text = self.redactor.text
        facts = [(LABELS.get(name, name), text(str(session[name])))
                 for name in FACTS if session.get(name)]  # fmt: skip
        facts.append(("started", moment(session.get("started_at"))))
        if session.get("ended_at") is not None:
            reason = session.get("end_reason")
            facts.append(
                ("ended", moment(session["ended_at"]) + (f" ({reason})" if reason else ""))
            )
        title = text(session.get("title") or self._first_words(session_id)) or NAMELESS
        prompt = text(str(session.get("system_prompt") or ""))
        return ReadableConversation(title, facts, prompt, lambda: self._said(session_id))

    def _first_words(self, session_id: str) -> str:
        messages = self.db.iter_messages(session_id)
        said = (one["content"] for one in messages if one.get("role") == "user")
        return preview(self.redactor.value(next(said, "")))

    def _said(self, session_id: str) -> Iterator[ReadableMessage]:
        for message in self.db.iter_messages(session_id, True):
            is_undone = not message.get("active", 1) and not message.get("compacted")
            if is_undone and not self.with_undone:
                continue
            yield self._one(message, is_undone=is_undone)

    def _one(self, message: dict[str, Any], *, is_undone: bool) -> ReadableMessage:
        redact = self.redactor
        marks = ["undone"] if is_undone else []
        marks += ["interrupted"] if message.get("finish_reason") == "interrupted" else []
        reasoning = message.get("reasoning") or message.get("reasoning_content") or ""
        calls = message.get("tool_calls")
        return ReadableMessage(
            role=str(message.get("role") or "?"),
            name=str(message.get("tool_name") or ""),
            at=moment(message.get("timestamp")),
            text=plain_text(redact.value(message.get("content"))).strip("\n"),
            reasoning=redact.text(str(reasoning)).strip("\n"),
            marks=marks,
            calls=[_call(redact.value(call)) for call in calls] if isinstance(calls, list) else [],
        )


def _call(call: Any) -> tuple[str, str]:
    """Name and arguments of a tool call; arguments that are JSON are laid out."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        function = call if isinstance(call, dict) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(function.get("name") or "unnamed tool"), arguments
    laid_out = "" if arguments is None else json.dumps(arguments, indent=2, ensure_ascii=False)
    return str(function.get("name") or "unnamed tool"), laid_out


def moment(at: Any) -> str:
    """A stored time in the local zone; '-' for what is no time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(at)))
    except (TypeError, ValueError, OverflowError, OSError):
        return "-"


def encodable(text: str) -> bytes:
    """*text* as UTF-8; what UTF-8 cannot carry is spelled out."""
    return text.encode("utf-8", "backslashreplace")
