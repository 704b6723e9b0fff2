"""The messages of a session in order, and its row in `sessions`."""

from __future__ import annotations

import itertools
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
MAX_BYTES: Final = 200_000
TOOLS: Final = {
    "terminal": 32, "read_file": 15, "patch": 9, "search_files": 9, "write_file": 7,
    "web_search": 5, "web_extract": 4, "browser_navigate": 3, "browser_click": 2,
    "browser_type": 1, "todo": 3, "memory": 2, "delegate_task": 1.5, "session_search": 1.5,
    "skill_view": 1, "execute_code": 1, "process": 0.8, "mcp_tracker_issue": 0.6,
    "vision_analyze": 0.5, "clarify": 0.4, "skill_manage": 0.4, "cronjob": 0.3,
    "image_generate": 0.3, "text_to_speech": 0.2, "calendar_lookup": 0.2,
}  # fmt: skip
TOOL_NAMES: Final = tuple(TOOLS)
TOOL_WEIGHTS: Final = tuple(itertools.accumulate(TOOLS.values()))
# Name, provider, dollars per token, and weight.
MODELS: Final = (
    ("anthropic/claude-sonnet-4-20250514", "anthropic", 3e-6, 20),
    ("claude-sonnet-4", "anthropic", 3e-6, 10),
    ("claude-sonnet-4.5", "anthropic", 3e-6, 18),
    ("openrouter/anthropic/claude-opus-4.1", "openrouter", 1.5e-5, 5),
    ("gpt-5", "openai", 2e-6, 10),
    ("gpt-5-mini", "openai", 4e-7, 8),
    ("openrouter/openai/gpt-5-mini", "openrouter", 4e-7, 2),
    ("gemini-2.5-pro", "google", 2e-6, 7),
    ("google/gemini-2.5-flash-preview", "openrouter", 3e-7, 3),
    ("openrouter/deepseek/deepseek-v3:free", "openrouter", 0.0, 4),
    ("deepseek-v3", "openrouter", 3e-7, 4),
    ("nousresearch/hermes-4-405b", "nous", 1e-6, 4),
    ("qwen3:8b", "local", 0.0, 3),
    ("qwen3-32b", "local", 0.0, 2),
    ("llama3.3:70b-instruct-q4_K_M", "local", 0.0, 1),
    ("x-ai/grok-4-fast", "openrouter", 3e-7, 1),
)  # fmt: skip
MODEL_WEIGHTS: Final = tuple(itertools.accumulate(model[3] for model in MODELS))
FOLDERS: Final = ("/home/me/notes", "/home/me/web/shop", "/home/me/api", "/srv/infra", "/home/me/é")
END_REASONS: Final = {"cli": "cli_close", "tui": "tui_close", "cron": "cron_complete"}
MAX_COPIED_ROWS: Final = 40
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


class Call(NamedTuple):
    """A tool call."""

    mark: str
    tool: str
    arguments: dict[str, Any]


@dataclass
class Session:
    """The state of a session while its messages are generated."""

    planned: plan.Planned
    session_id: str
    parent_id: str | None
    starts_at: float
    title: str | None
    model: tuple[str, str, float, int]
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
    inherited: list[Message] = field(default_factory=list)  # rows that a branch may copy
    kept: list[Message] | None = None  # the first rows, for a later branch

    def columns(self, rng: Random) -> dict[str, Any]:
        """The row in `sessions`, after all messages are generated."""
        tokens = self.characters // 4
        ended_at, reason = self._end(rng)
        markers = {"_branched_from": plan.BRANCH, "_delegate_from": plan.DELEGATE}
        config: dict[str, Any] = {"max_iterations": 90, "max_tokens": None}
        config |= {name: self.parent_id for name, k in markers.items() if k == self.planned.kind}
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
            "reasoning_tokens": tokens // 10 if self.model[2] > 1e-6 else 0,
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
        return self.now, END_REASONS.get(self.planned.source, "agent_close")


def begin(
    rng: Random, generator: texts.Texts, planned: plan.Planned, parent: Session | None
) -> Session:
    """Create a session before its messages are generated."""
    is_chat = planned.source in plan.CHATS
    session = Session(
        planned=planned,
        session_id=_session_id(rng, planned),
        parent_id=None if parent is None else parent.session_id,
        starts_at=planned.starts_at,
        title=_title(rng, planned, parent),
        model=parent.model if parent else rng.choices(MODELS, cum_weights=MODEL_WEIGHTS)[0],
        cwd=None if is_chat else parent.cwd if parent else rng.choice(FOLDERS),
        prompt=rng.randrange(40),
        language=parent.language if parent else generator.language(rng),
        now=planned.starts_at,
    )
    if any(child.kind == plan.BRANCH for child in planned.then):
        session.kept = []
    if planned.kind == plan.BRANCH and parent is not None:
        session.inherited = parent.kept or []
    rows = planned.rows
    if rows > 150 and rng.random() < 0.4:
        session.compacted_below = rng.randrange(50, rows - 50)
    elif rows > 6 and rng.random() < 0.05:
        session.undone = range(rows // 2, min(rows - 1, rows // 2 + 5))
    return session


def _session_id(rng: Random, planned: plan.Planned) -> str:
    timestamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(planned.starts_at))
    if planned.source == "cron":
        return f"cron_{rng.getrandbits(32):08x}_{timestamp}"
    digits = 8 if planned.source in plan.CHATS else 6
    return f"{timestamp}_{rng.getrandbits(4 * digits):0{digits}x}"


def _title(rng: Random, planned: plan.Planned, parent: Session | None) -> str | None:
    if planned.kind == plan.CONTINUATION and parent is not None and parent.title:
        name, _, number = parent.title.partition(" #")
        return f"{name} #{int(number or 1) + 1}"
    return texts.title(rng) if rng.random() < 0.6 and planned.source != "cron" else None


def play(rng: Random, generator: texts.Texts, session: Session, scale: float) -> Iterator[Message]:
    """Generate the messages of a session; *scale* applies to tool results."""
    yield from _copies(session)
    while True:
        yield _user_message(rng, session)
        while rng.random() < 0.7:
            calls = _calls(rng, generator)
            yield _tool_call_message(rng, session, calls)
            for call in calls:
                session.now += 0.2 + rng.expovariate(0.4)
                size_bytes = _size(rng, TOOL_BYTES, scale)
                text = generator.tool_result(rng, call.tool, call.arguments, size_bytes)
                yield _row(session, "tool", text, tool_call_id=call.mark, tool_name=call.tool)
        session.now += 2 + rng.expovariate(0.1)
        session.api_calls += 1
        text = session.language.cut(rng, _size(rng, ASSISTANT_BYTES))
        thought = generator.english.cut(rng, 400) if rng.random() < 0.15 else None
        yield _row(session, "assistant", text, finish_reason="stop", reasoning=thought)


def _copies(session: Session) -> Iterator[Message]:
    """The first rows of a branch: copies of its parent's turns."""
    max_rows = session.planned.rows // 2
    turns = [n for n, row in enumerate(session.inherited) if row.role == "user" and n <= max_rows]
    for row in session.inherited[: turns[-1] if turns else 0]:
        session.now += 0.001
        session.row_count += 1
        session.characters += len(row.content)
        session.tool_call_count += (row.tool_calls or "").count('"call_id": ')
        yield row._replace(
            session_id=session.session_id, timestamp=session.now, active=1, compacted=0
        )


def _calls(rng: Random, generator: texts.Texts) -> list[Call]:
    names = rng.choices(TOOL_NAMES, cum_weights=TOOL_WEIGHTS, k=_call_count(rng))
    return [
        Call(f"call_{rng.getrandbits(64):016x}", name, generator.arguments(rng, name))
        for name in names
    ]


def _user_message(rng: Random, session: Session) -> Message:
    is_chat = session.planned.source in plan.CHATS
    session.now += min(8 * 3600, rng.lognormvariate(6.5 if is_chat else 4.0, 1.4))
    text = session.language.cut(rng, _size(rng, USER_BYTES))
    if rng.random() < PICTURE_SHARE:
        parts = [{"type": "text", "text": text}, texts.MULTIMODAL_PICTURE]
        text = "\x00json:" + json.dumps(parts)
    mark = str(session.row_count + 1000) if is_chat else None
    return _row(session, "user", text, platform_message_id=mark)


def _tool_call_message(rng: Random, session: Session, calls: list[Call]) -> Message:
    session.now += 1 + rng.expovariate(0.15)
    session.api_calls += 1
    session.tool_call_count += len(calls)
    tool_calls = [
        {
            "id": call.mark,
            "call_id": call.mark,
            "response_item_id": None,
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for call in calls
    ]
    text = session.language.cut(rng, _size(rng, USER_BYTES)) if rng.random() < 0.4 else ""
    return _row(
        session, "assistant", text, tool_calls=json.dumps(tool_calls), finish_reason="tool_calls"
    )


def _row(session: Session, role: str, content: str, **columns: str | None) -> Message:
    number = session.row_count
    session.row_count += 1
    session.characters += len(content)
    is_compacted = number < session.compacted_below
    message = Message(
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
    if session.kept is not None and number < MAX_COPIED_ROWS:
        session.kept.append(message)
    return message


def _call_count(rng: Random) -> int:
    return 1 if rng.random() < 0.8 else rng.randint(2, 4)


def _size(rng: Random, shape: tuple[int, float], scale: float = 1.0) -> int:
    median, spread = shape
    size = scale * median * rng.lognormvariate(0, spread)
    return int(min(MAX_BYTES, max(8.0, size)))
