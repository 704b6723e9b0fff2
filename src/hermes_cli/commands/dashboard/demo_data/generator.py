"""Generates the sample history: a year of conversations, the same on every machine and day."""

from __future__ import annotations

import json
import random
import tomllib
from datetime import datetime, timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_core.clock import ManualClock
    from hermes_core.json_values import JsonValue
    from hermes_core.messages import Message, ToolCallDict
    from hermes_state.store import SessionDB

    Progress = Callable[[int, int], object]

NAMES: Final = {
    "project": ("lighthouse", "orchard", "ferry", "atlas", "tidepool", "heron", "lantern"),
    "module": (
        "orders", "billing", "search", "calendar", "import", "mail", "login", "export", "upload",
        "invoice", "stock", "map",
    ),
    "person": ("the team", "support", "the customer"),
    "guests": ("four", "five", "six", "eight", "ten"),
    "weekday": ("Friday", "Saturday", "Sunday"),
}  # fmt: skip


class SampleTool(NamedTuple):
    """A tool call and its result: text, or values that become JSON."""

    name: str
    arguments: JsonValue
    result: JsonValue


class SampleTurn(NamedTuple):
    """A prompt, its tool calls and the answer."""

    user: str
    tools: list[SampleTool]
    answer: str


class SampleTopic(NamedTuple):
    """The template of a sample conversation."""

    title: str
    kinds: list[str]
    turns: list[SampleTurn]


def topics() -> list[SampleTopic]:
    """All topics of the sample data."""
    text = (
        resources.files("hermes_cli.commands.dashboard.demo_data")
        .joinpath("topics.toml")
        .read_text("utf-8")
    )
    return [_topic(**item) for item in tomllib.loads(text)["topic"]]


def _topic(title: str, kinds: list[str], turn: list[dict[str, Any]]) -> SampleTopic:
    return SampleTopic(title, kinds, [_turn(**item) for item in turn])


def _turn(user: str, answer: str, tools: Sequence[dict[str, Any]] = ()) -> SampleTurn:
    return SampleTurn(user, [SampleTool(**tool) for tool in tools], answer)


class TopicNames(NamedTuple):
    """The names inserted into one conversation."""

    values: dict[str, str]

    @classmethod
    def chosen(cls, dice: random.Random) -> TopicNames:
        """Choose a consistent set of names."""
        minor = dice.randint(1, 60)
        chosen = {name: dice.choice(values) for name, values in NAMES.items()}
        return cls({**chosen, "minor": str(minor), "previous": str(minor - 1)})

    def text(self, template: str) -> str:
        """Insert the names into a text."""
        for name, value in self.values.items():
            template = template.replace("{" + name + "}", value)
        return template.strip()

    def json(self, value: Any) -> str:
        """Insert the names into a JSON value or a text."""
        return self.text(value if isinstance(value, str) else json.dumps(value))


SESSIONS: Final = 420
DAYS: Final = 365
STREAK_DAYS: Final = 17
HOLIDAY: Final = range(120, 131)
SEED: Final = 20_261_115
MODELS: Final = (
    ("anthropic/claude-sonnet-4.5", 3.0, 15.0, 5),
    ("openai/gpt-5", 1.25, 10.0, 4),
    ("google/gemini-2.5-flash", 0.3, 2.5, 3),
    ("ollama/qwen3:14b", 0.0, 0.0, 2),
)
PER_TOKEN: Final = 1e-6
TAGS: Final = ("work", "home", "learning", "release")
HOURS: Final = (8, 9, 9, 10, 10, 11, 13, 14, 14, 15, 16, 17, 20, 21, 21, 22, 23, 6)


def write(
    db: SessionDB, clock: ManualClock, now: datetime, progress: Progress | None = None
) -> int:
    """Write the history up to *now* into *db*, which uses *clock*."""
    known = topics()
    moments = sorted(_moments(random.Random(SEED), now))
    # Only the times depend on the day (its weekday), so the content has dice of its own.
    dice = random.Random(SEED)
    for number, moment in enumerate(moments, 1):
        _Writer(db, clock, dice, known).conversation(moment, now.timestamp())
        if progress is not None:
            progress(number, len(moments))
    clock.set(now.timestamp())
    _put_in_order(db, dice)
    return len(moments)


def _moments(dice: random.Random, now: datetime) -> Iterator[float]:
    """The start times: more on working days, daily of late, none on holiday."""
    for back in range(STREAK_DAYS):
        yield _at(dice, now, back)
    streak_days = STREAK_DAYS
    while streak_days < SESSIONS:
        back = min(int(dice.triangular(0, DAYS, 10)), DAYS - 1)
        is_weekend = (now - timedelta(days=back)).weekday() >= 5
        if back in HOLIDAY or (is_weekend and dice.random() < 0.55):
            continue
        streak_days += 1
        yield _at(dice, now, back)


def _at(dice: random.Random, now: datetime, back: int) -> float:
    """A time on the day so many days ago; today, one in the past."""
    day = now - timedelta(days=back)
    at = day.replace(
        hour=dice.choice(HOURS), minute=dice.randrange(60), second=dice.randrange(60), microsecond=0
    )
    latest = now - timedelta(minutes=20)
    return min(at, latest - timedelta(minutes=dice.randrange(180))).timestamp()


class _Writer:
    """Writes one conversation."""

    def __init__(
        self, db: SessionDB, clock: ManualClock, dice: random.Random, known: list[SampleTopic]
    ) -> None:
        self._db = db
        self._shown = clock
        self._dice = dice
        self._topic = dice.choice(known)
        self._filling = TopicNames.chosen(dice)
        self._clock = 0.0
        self._calls = 0

    def conversation(self, began: float, now: float) -> None:
        """Write the conversation from start to end."""
        dice = self._dice
        self._clock = began
        self._shown.set(began)
        stamp = datetime.fromtimestamp(began).astimezone().strftime("%Y%m%d_%H%M%S")
        session_id = f"{stamp}_{dice.randrange(16**6):06x}"
        model, read_price, write_price, _ = dice.choices(MODELS, [m[3] for m in MODELS])[0]
        source = dice.choice(self._topic.kinds)
        project = self._filling.values["project"]
        folder = f"/home/demo/{project}" if source in ("cli", "tui") else None
        self._db.sessions.create_session(
            session_id,
            source,
            model=model,
            cwd=folder,
            started_at=began,
            is_owned=False,
            system_prompt="You are Hermes, a personal agent. This conversation is invented.",
        )
        self._db.messages.append_messages_batch(session_id, list(self._messages(now)))
        self._shown.set(self._clock)
        self._name(session_id)
        read, written = dice.randint(4_000, 90_000), dice.randint(300, 6_000)
        self._db.usage.update_token_counts(
            session_id,
            input_tokens=read,
            output_tokens=written,
            cache_read_tokens=int(read * dice.uniform(0.2, 0.8)),
            api_call_count=1 + self._calls,
            estimated_cost_usd=round((read * read_price + written * write_price) * PER_TOKEN, 6),
        )
        self._db.sessions.end_session(
            session_id, dice.choice(("cli_close", "tui_close", "new_session"))
        )

    def _name(self, session_id: str) -> None:
        title = self._filling.text(self._topic.title)
        self._db.titles.set_session_title(
            session_id, self._db.titles.get_next_title_in_lineage(title), source="llm"
        )

    def _messages(self, now: float) -> Iterator[Message]:
        for number, turn in enumerate(self._topic.turns):
            if number and self._dice.random() < 0.25:
                return
            yield from self._turn(turn, now)

    def _turn(self, turn: SampleTurn, now: float) -> Iterator[Message]:
        yield self._message(now, "user", self._filling.text(turn.user), 20, 400)
        for tool in turn.tools:
            self._calls += 1
            call_id = f"call_{self._dice.randrange(16**8):08x}"
            arguments = self._filling.json(tool.arguments)
            call: ToolCallDict = {
                "id": call_id,
                "type": "function",
                "function": {"name": tool.name, "arguments": arguments},
            }
            yield self._message(now, "assistant", "", 2, 15) | {"tool_calls": [call]}
            answer = self._message(now, "tool", self._filling.json(tool.result), 1, 40)
            yield answer | {"tool_call_id": call_id, "tool_name": tool.name}
        yield self._message(now, "assistant", self._filling.text(turn.answer), 3, 30)

    def _message(self, now: float, role: str, text: str, shortest: int, longest: int) -> Message:
        self._clock = min(self._clock + self._dice.uniform(shortest, longest), now)
        return {"role": role, "content": text, "timestamp": self._clock}


def _put_in_order(db: SessionDB, dice: random.Random) -> None:
    """Pin, tag, archive and branch some conversations."""
    rows = db.lists.sessions(limit=-1, order_by_last_active=True)
    for row in dice.sample(rows[:80], 4):
        db.sessions.set_session_pinned(row.id)
    for row in dice.sample(rows, 60):
        db.tags.replace(row.id, [dice.choice(TAGS)])
    for row in dice.sample(rows[150:], 25):
        db.sessions.set_session_archived(row.id)
    for row in dice.sample(rows[150:], 6):
        db.trash.delete_session(row.id)
    db.boundaries.skip_all()
