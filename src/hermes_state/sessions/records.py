"""Rows of sessions, made from SQL columns by position.

Annotations are evaluated: typing would compile each of the many that are strings, which takes
a millisecond at every start.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.values import amount_sql, number_sql

if TYPE_CHECKING:
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.values import SqlValue


class SessionRow(NamedTuple):
    """A session. Columns that the file lacks have their initial values.

    `others` are the values of the file's further columns, in the order of `other_columns`.
    """

    id: str
    source: str
    user_id: str | None
    model: str | None
    model_config: str | None
    parent_session_id: str | None
    started_at: float
    ended_at: float | None
    end_reason: str | None
    cwd: str | None
    title: str | None
    message_count: int
    tool_call_count: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_call_count: int
    rewind_count: int
    archived: int
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str | None
    cost_source: str | None
    pricing_version: str | None
    handoff_state: str | None
    handoff_platform: str | None
    handoff_error: str | None
    pinned: int
    hidden: int
    title_source: str | None
    last_read_at: float | None
    session_key: str | None
    chat_id: str | None
    chat_type: str | None
    thread_id: str | None
    display_name: str | None
    origin_json: str | None
    profile_name: str | None
    git_branch: str | None
    git_repo_root: str | None
    expiry_finalized: int
    system_prompt: str | None  # None in lists
    others: "tuple[SqlValue, ...]"


COLUMNS: Final = SessionRow._fields[:-1]
_NUMBERS: Final = frozenset({"pinned", "hidden", "expiry_finalized"})
_AMOUNTS: Final = frozenset(
    {"ended_at", "archived", "estimated_cost_usd", "actual_cost_usd", "last_read_at", *_NUMBERS}
)
# Another program may have stored a blob.
_SHOWN_TEXTS: Final = frozenset(
    {
        "id",
        "source",
        "user_id",
        "model",
        "end_reason",
        "cwd",
        "title",
        "display_name",
        "git_repo_root",
    }
)
_COUNTS: Final = frozenset(COLUMNS[COLUMNS.index("message_count") : COLUMNS.index("archived")])
# Columns that older files lack; their values are then in a table of ours.
EXTRA_COLUMNS: Final = frozenset(COLUMNS[COLUMNS.index("pinned") : -1])


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
    if name in _COUNTS or name == "started_at":
        return amount_sql(f"s.{name}")
    if name in _AMOUNTS and columns.session_has(name):
        return number_sql(f"s.{name}")
    if columns.session_has(name):
        return f"CAST(s.{name} AS TEXT)" if name in _SHOWN_TEXTS else "s." + name
    return "0" if name in _NUMBERS else "NULL"


def parse_extra(name: str, value: "SqlValue") -> "SqlValue":
    """A value of the table of extra columns, which stores text."""
    return int(value) if name in _NUMBERS and value is not None else value


def to_session(values: "tuple[SqlValue, ...]", other_count: int) -> SessionRow:
    """A session from the columns of `all_columns` or `listed_columns`; further ones are ignored."""
    known = len(COLUMNS)
    return SessionRow._make((*values[:known], values[known : known + other_count]))
