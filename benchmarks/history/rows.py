"""One session played through: its messages in order, and the row that sums them up."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from history import plan, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

USER_BYTES: Final = (200, 1.2)  # median and spread of a log-normal size
ASSISTANT_BYTES: Final = (600, 1.0)
TOOL_BYTES: Final = (2000, 1.3)
MOST_BYTES: Final = 200_000
TOOLS: Final = ("terminal", "read_file", "write_file", "search_files", "patch", "web_search",
                "web_extract", "browser_navigate", "memory", "delegate_task")  # fmt: skip
MODELS: Final = (("claude-sonnet-4.5", "anthropic", 3e-6), ("gpt-5", "openai", 2e-6),
                 ("deepseek-v3", "openrouter", 3e-7), ("qwen3-32b", "local", 0.0))  # fmt: skip
FOLDERS: Final = ("/home/me/notes", "/home/me/web/shop", "/home/me/api", "/srv/infra", "/home/me/é")
ENDS: Final = {"cli": "cli_close", "tui": "tui_close", "cron": "cron_complete"}
PICTURE_SHARE: Final = 0.02
OPEN_SHARE: Final = 0.01
STILL_OPEN_SECONDS: Final = 2 * plan.DAY_SECONDS


class Message(NamedTuple):
    """The columns of a message that vary."""

    session_id: str
    role: str
    content: str
    tool_call_id: str | None
    tool_calls: str | None
    tool_name: str | None
    timestamp: float
    finish_reason: str | None
    reasoning: str | None
    platform_message_id: str | None
    active: int
    compacted: int


@dataclass
class Session:
    """A session while it is played."""

    planned: plan.Planned
    session_id: str
    parent_id: str | None
    starts_at: float
    title: str | None
    model: tuple[str, str, float]
    cwd: str | None
    prompt: int
    language: texts.Stream
    undone: range = range(0)
    compacted_below: int = 0
    now: float = 0.0
    row_count: int = 0
    tool_call_count: int = 0
    api_calls: int = 0
    characters: int = field(default=0)

    def columns(self, rng: Random) -> dict[str, Any]:
        """The row in `sessions`, once all messages are there."""
        tokens = self.characters // 4
        ended_at, reason = self._end(rng)
        marks = {"_branched_from": plan.BRANCH, "_delegate_from": plan.DELEGATE}
        config: dict[str, Any] = {"max_iterations": 90, "max_tokens": None}
        config |= {name: self.parent_id for name, k in marks.items() if k == self.planned.kind}
        return {
            "id": self.session_id,
            "source": self.planned.source,
            "user_id": "u1" if self.planned.source in plan.CHATS else None,
            "model": self.model[0],
            "model_config": json.dumps(config),
            "parent_session_id": self.parent_id,
            "started_at": self.starts_at,
            "ended_at": ended_at,
            "end_reason": reason,
            "message_count": self.row_count,
            "tool_call_count": self.tool_call_count,
            "input_tokens": tokens * 3,
            "output_tokens": tokens // 2,
            "cache_read_tokens": tokens * 20,
            "cache_write_tokens": tokens,
            "cwd": self.cwd,
            "billing_provider": self.model[1],
            "estimated_cost_usd": round(tokens * self.model[2], 6),
            "cost_status": "estimated" if self.model[2] else "included",
            "title": self.title,
            "api_call_count": self.api_calls,
            "rewind_count": int(bool(self.undone)),
            "archived": int(rng.random() < 0.02),
        }

    def _end(self, rng: Random) -> tuple[float | None, str | None]:
        is_recent = self.now > plan.ENDS_AT - STILL_OPEN_SECONDS
        then = self.planned.then
        if then:
            kind = then[0].kind
            return self.now, "compression" if kind == plan.CONTINUATION else "branched"
        if rng.random() < (0.5 if is_recent else OPEN_SHARE):
            return None, None
        if self.planned.source in plan.CHATS:
            return self.now, "session_reset"
        return self.now, ENDS.get(self.planned.source, "agent_close")


def begin(
    rng: Random, words: texts.Texts, planned: plan.Planned, parent: Session | None
) -> Session:
    """A session that is about to be played."""
    is_chat = planned.source in plan.CHATS
    session = Session(
        planned=planned,
        session_id=_session_id(rng, planned),
        parent_id=None if parent is None else parent.session_id,
        starts_at=planned.starts_at,
        title=_title(rng, planned, parent),
        model=parent.model if parent else rng.choices(MODELS, (5, 3, 2, 1))[0],
        cwd=None if is_chat else parent.cwd if parent else rng.choice(FOLDERS),
        prompt=rng.randrange(40),
        language=parent.language if parent else words.language(rng),
        now=planned.starts_at,
    )
    rows = planned.rows
    if rows > 150 and rng.random() < 0.4:
        session.compacted_below = rng.randrange(50, rows - 50)
    elif rows > 6 and rng.random() < 0.05:
        session.undone = range(rows // 2, min(rows - 1, rows // 2 + 5))
    return session


def _session_id(rng: Random, planned: plan.Planned) -> str:
    moment = time.strftime("%Y%m%d_%H%M%S", time.gmtime(planned.starts_at))
    if planned.source == "cron":
        return f"cron_{rng.getrandbits(32):08x}_{moment}"
    digits = 8 if planned.source in plan.CHATS else 6
    return f"{moment}_{rng.getrandbits(4 * digits):0{digits}x}"


def _title(rng: Random, planned: plan.Planned, parent: Session | None) -> str | None:
    if planned.kind == plan.CONTINUATION and parent is not None and parent.title:
        name, _, number = parent.title.partition(" #")
        return f"{name} #{int(number or 1) + 1}"
    return texts.title(rng) if rng.random() < 0.6 and planned.source != "cron" else None


def play(rng: Random, words: texts.Texts, session: Session, scale: float) -> Iterator[Message]:
    """The messages of a session, each at its time; *scale* is for the tools' results."""
    while True:
        yield _said_by_user(rng, session)
        while rng.random() < 0.7:
            calls = [f"call_{rng.getrandbits(64):016x}" for _ in range(_few(rng))]
            names = [TOOLS[int(rng.random() ** 2 * len(TOOLS))] for _ in calls]
            yield _asking_for_tools(rng, session, list(zip(calls, names, strict=True)))
            for call, name in zip(calls, names, strict=True):
                session.now += 0.2 + rng.expovariate(0.4)
                text = words.tool_result(rng, _size(rng, TOOL_BYTES, scale))
                yield _row(session, "tool", text, tool_call_id=call, tool_name=name)
        session.now += 2 + rng.expovariate(0.1)
        session.api_calls += 1
        text = session.language.cut(rng, _size(rng, ASSISTANT_BYTES))
        thought = words.english.cut(rng, 400) if rng.random() < 0.15 else None
        yield _row(session, "assistant", text, finish_reason="stop", reasoning=thought)


def _said_by_user(rng: Random, session: Session) -> Message:
    is_chat = session.planned.source in plan.CHATS
    session.now += min(8 * 3600, rng.lognormvariate(6.5 if is_chat else 4.0, 1.4))
    text = session.language.cut(rng, _size(rng, USER_BYTES))
    if rng.random() < PICTURE_SHARE:
        parts = [{"type": "text", "text": text}, texts.MULTIMODAL_PICTURE]
        text = "\x00json:" + json.dumps(parts)
    mark = str(session.row_count + 1000) if is_chat else None
    return _row(session, "user", text, platform_message_id=mark)


def _asking_for_tools(rng: Random, session: Session, calls: list[tuple[str, str]]) -> Message:
    session.now += 1 + rng.expovariate(0.15)
    session.api_calls += 1
    session.tool_call_count += len(calls)
    asked = [
        {
            "id": call,
            "call_id": call,
            "response_item_id": None,
            "type": "function",
            "function": {
                "name": name,
                "arguments": json.dumps({"command": f"{name} --at {call[5:]}", "timeout": 60}),
            },
        }
        for call, name in calls
    ]
    text = session.language.cut(rng, _size(rng, USER_BYTES)) if rng.random() < 0.4 else ""
    return _row(
        session, "assistant", text, tool_calls=json.dumps(asked), finish_reason="tool_calls"
    )


def _row(session: Session, role: str, content: str, **columns: str | None) -> Message:
    number = session.row_count
    session.row_count += 1
    session.characters += len(content)
    is_compacted = number < session.compacted_below
    return Message(
        session.session_id,
        role,
        content,
        columns.get("tool_call_id"),
        columns.get("tool_calls"),
        columns.get("tool_name"),
        session.now,
        columns.get("finish_reason"),
        columns.get("reasoning"),
        columns.get("platform_message_id"),
        int(not is_compacted and number not in session.undone),
        int(is_compacted),
    )


def _few(rng: Random) -> int:
    return 1 if rng.random() < 0.8 else rng.randint(2, 4)


def _size(rng: Random, shape: tuple[int, float], scale: float = 1.0) -> int:
    median, spread = shape
    size = scale * median * rng.lognormvariate(0, spread)
    return int(min(MOST_BYTES, max(8.0, size)))
