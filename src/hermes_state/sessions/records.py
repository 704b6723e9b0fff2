"""Rows of sessions, made from SQL columns by position.

Annotations are evaluated: typing would compile each of the many that are strings, which takes
a millisecond at every start.
"""

import enum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from hermes_core.json_values import parse_object
from hermes_state.engine.values import amount_sql, number_sql

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Columns, Reader
    from hermes_state.engine.values import SqlValue


class Trait(enum.Enum):
    """How a column of sessions is read; without one, as it is stored."""

    COUNT = enum.auto()  # 0 for what is not a number
    NUMBER = enum.auto()  # None for what is not a number
    SHOWN = enum.auto()  # as text: another program may have stored a blob
    EXTRA = enum.auto()  # older files lack it; its values are then in a table of ours


COUNT, NUMBER, SHOWN, EXTRA = Trait
Count = Annotated[int, COUNT]
Number = Annotated[float | None, NUMBER]
ShownText = Annotated[str | None, SHOWN]
ExtraText = Annotated[str | None, EXTRA]
ExtraShownText = Annotated[str | None, EXTRA, SHOWN]
ExtraFlag = Annotated[int, NUMBER, EXTRA]


class SessionRow(NamedTuple):
    """A session: the table of its columns, in any order.

    Columns that the file lacks have their initial values. `others` are the values of the file's
    further columns, in the order of `other_columns`.
    """

    id: Annotated[str, SHOWN]
    source: Annotated[str, SHOWN]
    user_id: ShownText
    model: ShownText
    model_config: str | None
    parent_session_id: str | None
    started_at: Annotated[float, COUNT]
    ended_at: Number
    end_reason: ShownText
    cwd: ShownText
    title: ShownText
    message_count: Count
    tool_call_count: Count
    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count
    cache_write_tokens: Count
    reasoning_tokens: Count
    api_call_count: Count
    rewind_count: Count
    archived: Annotated[int, NUMBER]
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None
    estimated_cost_usd: Number
    actual_cost_usd: Number
    cost_status: str | None
    cost_source: str | None
    pricing_version: str | None
    handoff_state: str | None
    handoff_platform: str | None
    handoff_error: str | None
    pinned: ExtraFlag
    hidden: ExtraFlag
    title_source: ExtraText
    last_read_at: Annotated[float | None, NUMBER, EXTRA]
    session_key: ExtraText
    chat_id: ExtraText
    chat_type: ExtraText
    thread_id: ExtraText
    display_name: ExtraShownText
    origin_json: ExtraText
    profile_name: ExtraText
    git_branch: ExtraText
    git_repo_root: ExtraShownText
    expiry_finalized: ExtraFlag
    system_prompt: str | None  # None in lists
    others: "tuple[SqlValue, ...]"

    def marker(self, name: str) -> object:
        """What Hermes has stored under a name in the configuration; None without it."""
        return (parse_object(self.model_config or "{}") or {}).get(name)


COLUMNS: Final = SessionRow._fields[:-1]


def _with(trait: Trait) -> frozenset[str]:
    traits = SessionRow.__annotations__
    return frozenset(n for n in COLUMNS if trait in getattr(traits[n], "__metadata__", ()))


_COUNTS: Final = _with(COUNT)
_NUMBERS: Final = _with(NUMBER)
_SHOWN_TEXTS: Final = _with(SHOWN)
EXTRA_COLUMNS: Final = _with(EXTRA)
# The extra columns that are never NULL.
_FLAGS: Final = frozenset(n for n in COLUMNS if SessionRow.__annotations__[n] is ExtraFlag)


class ListedSession(NamedTuple):
    """A session in a list.

    `started_at` of the session is the start of its conversation; `root_id` is the first row
    of the conversation.
    """

    session: SessionRow
    preview: str
    last_active: float
    root_id: str
    kind: str
    unread: bool = False

    @property
    def id(self) -> str:
        """The ID of the session."""
        return self.session.id

    @property
    def name(self) -> str:
        """The title, or the beginning of the first message."""
        return self.session.title or self.preview


class PagedSession(NamedTuple):
    """A session on a page of a list, with details."""

    session: SessionRow
    preview: str
    last_active: float
    root_id: str
    kind: str
    unread: bool
    tags: list[str]
    is_running: bool
    trashed_at: float | None
    tool_errors: int | None = None  # None until they are counted

    @property
    def id(self) -> str:
        """The ID of the session."""
        return self.session.id


class FamilyMember(NamedTuple):
    """A session among those with the same oldest ancestor."""

    id: str
    title: str | None
    parent_id: str | None
    started_at: float
    message_count: int
    kind: str
    last_active: float
    preview: str
    trashed_at: float | None


class TrashedSession(NamedTuple):
    """A session in the trash."""

    session_id: str
    trashed_at: float
    reason: str
    title: str | None
    preview: str | None


def other_columns(columns: "Columns") -> tuple[str, ...]:
    """The file's columns of sessions that `SessionRow` does not name."""
    return tuple(name for name in columns.sessions if name not in SessionRow._fields)


def by_column(columns: "Columns", session: SessionRow) -> dict[str, object]:
    """All columns of a session."""
    names = (*COLUMNS, *other_columns(columns))
    return dict(zip(names, session[:-1] + session.others, strict=True))


def listed_columns(columns: "Columns") -> str:
    """The columns of `sessions s` in a list: without the system prompt."""
    return _select(columns, "NULL")


def all_columns(columns: "Columns") -> str:
    """The columns of `sessions s`, with the system prompt."""
    prompt = "s.system_prompt"
    if columns.hashes_prompts:
        stored = "SELECT prompt FROM system_prompts WHERE hash = s.system_prompt_hash"
        prompt = f"coalesce(s.system_prompt, ({stored}))"
    return _select(columns, prompt)


def _select(columns: "Columns", prompt: str) -> str:
    known = [_expression(columns, name, prompt) for name in COLUMNS]
    return ", ".join([*known, *("s." + name for name in other_columns(columns))])


def _expression(columns: "Columns", name: str, prompt: str) -> str:
    if name == "system_prompt":
        return prompt
    if name in _COUNTS:
        return amount_sql(f"s.{name}")
    if name in _NUMBERS and columns.session_has(name):
        return number_sql(f"s.{name}")
    if columns.session_has(name):
        return f"CAST(s.{name} AS TEXT)" if name in _SHOWN_TEXTS else "s." + name
    return "0" if name in _FLAGS else "NULL"


def parse_extra(name: str, value: "SqlValue") -> "SqlValue":
    """A value of the table of extra columns, which stores text."""
    return int(value) if name in _FLAGS and value is not None else value


def to_session(values: "tuple[SqlValue, ...]", other_count: int) -> SessionRow:
    """A session from the columns of `all_columns` or `listed_columns`; further ones are ignored."""
    known = len(COLUMNS)
    return SessionRow._make((*values[:known], values[known : known + other_count]))


# Names with a dot hold import data for the next export, not columns of a session.
SELECT_EXTRAS = """
    SELECT name, value FROM hermes_session_extra WHERE session_id = ? AND instr(name, '.') = 0
"""
SELECT_ALL_EXTRAS = (
    "SELECT session_id, name, value FROM hermes_session_extra WHERE instr(name, '.') = 0"
)


def lacks_extras(reader: "Reader") -> bool:
    """Whether values of sessions are in a table of ours, because the file lacks their columns."""
    columns = reader.columns
    return columns.has_own_tables and not EXTRA_COLUMNS.issubset(columns.sessions)


def with_extras(reader: "Reader", sessions: list[SessionRow]) -> list[SessionRow]:
    """The sessions with the values of columns that the file lacks."""
    if not lacks_extras(reader):
        return sessions
    extras = _extras(reader, sessions)
    if not extras:
        return sessions
    return [
        SessionRow._make((session._asdict() | extras[session.id]).values())
        if session.id in extras
        else session
        for session in sessions
    ]


def _extras(reader: "Reader", sessions: list[SessionRow]) -> "dict[str, dict[str, SqlValue]]":
    if len(sessions) > 100:
        triples = reader.rows(SELECT_ALL_EXTRAS)
    else:
        triples = [
            (session.id, name, value)
            for session in sessions
            for name, value in reader.rows(SELECT_EXTRAS, (session.id,))
        ]
    missing = EXTRA_COLUMNS.difference(reader.columns.sessions)
    extras: dict[str, dict[str, SqlValue]] = {}
    for session_id, name, value in triples:
        if name in missing:
            extras.setdefault(session_id, {})[name] = parse_extra(name, value)
    return extras
