"""Stored messages as the entries a transcript shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_conversation import agent_factory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Entry(NamedTuple):
    """Something to show: `user`, `assistant`, `thought`, `tool` or `notice`, and its words."""

    kind: str
    text: str
    result: str = ""


def entries(messages: Iterable[dict[str, Any]]) -> Iterator[Entry]:
    """What was said and done, in its order."""
    calls: list[str] = []
    for message in messages:
        role, text = message["role"], _text(message.get("content"))
        if role == "tool":
            label = calls.pop(0) if calls else str(message.get("tool_name") or "tool")
            yield Entry("tool", label, text)
        elif role == "assistant":
            if message.get("reasoning"):
                yield Entry("thought", str(message["reasoning"]))
            calls = [_label(call) for call in _calls(message.get("tool_calls"))]
            if text.strip():
                yield Entry("assistant", text)
        elif text.strip():
            yield Entry("user" if role == "user" else "notice", text)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _calls(stored: Any) -> list[dict[str, Any]]:
    if isinstance(stored, str):
        try:
            stored = json.loads(stored)
        except ValueError:
            return []
    return [call for call in stored or [] if isinstance(call, dict)]


def _label(call: dict[str, Any]) -> str:
    function = call.get("function") or {}
    return agent_factory.summary(
        str(function.get("name") or "tool"), str(function.get("arguments"))
    )


def has_failed(result: str) -> bool:
    """Whether a tool's answer tells of a failure."""
    facts = _facts(result)
    return bool(facts.get("error")) or facts.get("exit_code") not in {None, 0}


def diff_of(result: str) -> str:
    """What a tool changed in a file, if it did."""
    found = _facts(result).get("diff")
    return found if isinstance(found, str) else ""


def readable(result: str) -> str:
    """A tool's answer for people: what it printed, or its facts one below the other."""
    facts = _facts(result)
    if not facts:
        return result
    for name in ("error", "output", "content"):
        if isinstance(facts.get(name), str) and facts[name]:
            return str(facts[name])
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value is not None)


def _facts(result: str) -> dict[str, Any]:
    try:
        found = json.loads(result)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
