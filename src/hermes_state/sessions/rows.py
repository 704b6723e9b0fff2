"""Session rows: creating, ending, reopening, updating."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.hooks import BoundaryKind
from hermes_state.delivery import boundaries
from hermes_state.engine import process_identity
from hermes_state.ledger.repository import COUNTED_COLUMNS, record_change
from hermes_state.messages.rows import decode_json, encode_json, to_utf8_text
from hermes_state.repository import Repository
from hermes_state.sessions import index, lifecycle, lineage
from hermes_state.sessions.lifecycle import Announced, Change, State

if TYPE_CHECKING:
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.transaction import Reader, Tx

# Columns that older files lack, with their initial values.
EXTRA_DEFAULTS: dict[str, Any] = {
    "pinned": 0,
    "hidden": 0,
    "title_source": None,
    "last_read_at": None,
    "session_key": None,
    "chat_id": None,
    "chat_type": None,
    "thread_id": None,
    "display_name": None,
    "origin_json": None,
    "profile_name": None,
    "git_branch": None,
    "git_repo_root": None,
    "expiry_finalized": 0,
}
_NUMBERS = frozenset({"pinned", "hidden", "expiry_finalized"})

UPSERT_EXTRA = """
    INSERT INTO hermes_session_extra (session_id, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value
"""
# Names with a dot hold import data for the next export, not columns of a session.
SELECT_EXTRAS = """
    SELECT name, value FROM hermes_session_extra WHERE session_id = ? AND instr(name, '.') = 0
"""
SELECT_ALL_EXTRAS = (
    "SELECT session_id, name, value FROM hermes_session_extra WHERE instr(name, '.') = 0"
)


def set_fact(tx: Tx, session_id: str, name: str, value: Any) -> bool:
    """Set a column of a session; False if the session does not exist."""
    if name in COUNTED_COLUMNS:
        record_change(tx, session_id)
    if tx.columns.session_has(name):
        sql = f"UPDATE sessions SET {name} = ? WHERE id = ?"  # noqa: S608 - a known column
        return tx.execute(sql, (value, session_id)).rowcount > 0
    if not tx.value("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
        return False
    tx.execute(UPSERT_EXTRA, (session_id, name, value))
    return True


def with_extras(reader: Reader, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to each session row the columns that the file lacks."""
    missing = {
        name: value
        for name, value in EXTRA_DEFAULTS.items()
        if not reader.columns.session_has(name)
    }
    if not missing:
        return rows
    extras = _extras(reader, rows)
    for row in rows:
        row.update(missing)
        row.update(extras.get(row["id"], {}))
    return rows


def _extras(reader: Reader, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    if not reader.columns.has_own_tables:
        return {}
    extras: dict[str, dict[str, Any]] = {}
    if len(rows) > 100:
        triples = reader.rows(SELECT_ALL_EXTRAS)
    else:
        triples = [
            (row["id"], name, value)
            for row in rows
            for name, value in reader.rows(SELECT_EXTRAS, (row["id"],))
        ]
    for session_id, name, value in triples:
        is_number = name in _NUMBERS and value is not None
        extras.setdefault(session_id, {})[name] = int(value) if is_number else value
    return extras


EXISTS = "SELECT 1 FROM sessions WHERE id = ?"
END = "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL"
REOPEN = """
    UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ? AND ended_at IS NOT NULL
"""
NEXT_EPOCH = "UPDATE hermes_session_index SET epoch = epoch + 1 WHERE session_id = ?"
INSERT_PROMPT = "INSERT INTO system_prompts (hash, prompt) VALUES (?, ?) ON CONFLICT DO NOTHING"
SELECT_PROMPT = "SELECT prompt FROM system_prompts WHERE hash = ?"
SELECT_SESSION = "SELECT * FROM sessions WHERE id = ?"
COUNT_MESSAGES = "SELECT count(*) FROM messages"
COUNT_MESSAGES_OF = "SELECT count(*) FROM messages WHERE session_id = ?"


def create(tx: Tx, session_id: str, facts: dict[str, Any]) -> bool:
    """Create a session row, or fill in missing columns of an existing one; whether it is new."""
    facts = {name: value for name, value in facts.items() if value is not None}
    prompt = facts.pop("system_prompt", None)
    if prompt is not None:
        facts.update(prompt_columns(tx, prompt))
    columns = {n: v for n, v in facts.items() if tx.columns.session_has(n)}
    is_new = lifecycle.state_of(tx, session_id) is State.ABSENT
    lifecycle.plan(tx, session_id, Change.BEGIN)
    if is_new:
        columns.setdefault("started_at", tx.clock.now())
        names = ", ".join(["id", *columns])
        placeholders = ", ".join("?" * (len(columns) + 1))
        sql = f"INSERT INTO sessions ({names}) VALUES ({placeholders})"  # noqa: S608 - known columns
        tx.execute(sql, (session_id, *columns.values()))
    else:
        _fill_missing(tx, session_id, columns)
    for name in facts.keys() - columns.keys():
        if name in EXTRA_DEFAULTS:
            set_fact(tx, session_id, name, facts[name])
    if is_new:
        tx.execute(NEXT_EPOCH, (session_id,))  # if the ID was used before and purged
        index.reindex(tx, session_id)
        index.update_family_positions(tx, session_id)
    return is_new


def _fill_missing(tx: Tx, session_id: str, columns: dict[str, Any]) -> None:
    for name in columns.keys() - {"started_at", "source"}:
        sql = f"UPDATE sessions SET {name} = coalesce({name}, ?) WHERE id = ?"  # noqa: S608 - known
        tx.execute(sql, (columns[name], session_id))


def prompt_columns(tx: Tx, prompt: str) -> dict[str, Any]:
    """The columns for a system prompt; equal prompts are stored once if the file supports it."""
    text = to_utf8_text(prompt)
    if not tx.columns.hashes_prompts:
        return {"system_prompt": text}
    import hashlib  # noqa: PLC0415 - slow to load, needed only for a new session

    digest = hashlib.sha256((text or "").encode()).hexdigest()
    tx.execute(INSERT_PROMPT, (digest, text))
    return {"system_prompt_hash": digest}


def end(
    tx: Tx,
    event_id: str,
    session_id: str,
    reason: str,
    *,
    ended_at: float | None = None,
    new_session_id: str | None = None,
) -> bool:
    """End an open session and announce it; an ended session keeps its first reason."""
    planned = lifecycle.plan(tx, session_id, Change.END)
    if planned.announced is Announced.NOTHING:
        return False
    at = tx.clock.now() if ended_at is None else ended_at
    tx.execute(END, (at, reason, session_id))
    process_identity.clear_owner(tx, session_id)
    record_change(tx, session_id)
    boundaries.announce(
        tx,
        event_id,
        session_id,
        lifecycle.kind_of(reason),
        reason,
        is_final=planned.announced is Announced.FINAL,
        old_session_id=session_id,
        new_session_id=new_session_id,
    )
    if reason in ("compression", "branched"):
        index.update_family_positions(tx, session_id)
    return True


def reopen(tx: Tx, event_id: str, session_id: str) -> bool:
    """Reopen an ended session, which starts a new epoch."""
    planned = lifecycle.plan(tx, session_id, Change.REOPEN)
    if planned.announced is Announced.NOTHING:
        return False
    tx.execute(REOPEN, (session_id,))
    if planned.begins_epoch:
        tx.execute(NEXT_EPOCH, (session_id,))
    record_change(tx, session_id)
    boundaries.announce(
        tx,
        event_id,
        session_id,
        BoundaryKind.RESUME,
        "reopened",
        is_final=planned.announced is Announced.FINAL,
        new_session_id=session_id,
    )
    index.update_family_positions(tx, session_id)
    return True


def announce(
    tx: Tx, event_id: str, session_id: str, kind: BoundaryKind, reason: str, **ids: str | None
) -> None:
    """Announce a boundary that does not change the state of a conversation."""
    planned = lifecycle.plan(tx, session_id, Change.PASS)
    is_final = planned.announced is Announced.FINAL
    boundaries.announce(tx, event_id, session_id, kind, reason, is_final=is_final, **ids)


def get(reader: Reader, session_id: str) -> dict[str, Any] | None:
    """A session with all columns, including its system prompt."""
    rows = reader.dicts(SELECT_SESSION, (session_id,))
    if not rows:
        return None
    row = with_extras(reader, rows)[0]
    if row.get("system_prompt") is None and row.get("system_prompt_hash"):
        row["system_prompt"] = reader.value(SELECT_PROMPT, (row["system_prompt_hash"],))
    return row


def require(reader: Reader, session_id: str) -> dict[str, Any]:
    """Like `get`, but raise SessionNotFoundError if the session does not exist."""
    row = get(reader, session_id)
    if row is None:
        raise SessionNotFoundError(f"session not found: {session_id}")
    return row


def listed_columns(columns: Columns) -> tuple[str, ...]:
    """The columns of a list: all except the system prompt."""
    return tuple(name for name in columns.sessions if name != "system_prompt")


class SessionRepository(Repository):
    """Lifecycle and columns of sessions."""

    def create_session(
        self,
        /,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: dict[str, Any] | str | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        cwd: str | None = None,
        started_at: float | None = None,
        is_owned: bool = True,
        **facts: Any,
    ) -> str:
        """Create a session, or fill in missing columns of an existing row.

        Returns its ID. The session belongs to this process until it is ended or released:
        if the process dies, the session ends as crashed. `facts` are further columns:
        session_key, chat_id, chat_type, thread_id, display_name, origin_json, profile_name,
        git_branch, git_repo_root.
        """
        columns = {
            "source": source,
            "model": model,
            "model_config": encode_json(model_config),
            "system_prompt": system_prompt,
            "user_id": user_id,
            "parent_session_id": parent_session_id,
            "cwd": to_utf8_text(cwd),
            "started_at": started_at,
            **facts,
        }

        def begin(tx: Tx) -> None:
            is_new = create(tx, session_id, columns)
            if is_owned and is_new:
                self._register_process(tx)
                process_identity.set_owner(tx, session_id, self.identity.process_id)

        self.engine.write(begin)
        return session_id

    def ensure_session(
        self, /, session_id: str, source: str = "unknown", model: str | None = None, **facts: Any
    ) -> str:
        """Like `create_session`, for callers that do not need to know whether it exists."""
        return self.create_session(session_id, source, model=model, **facts)

    def end_session(
        self, session_id: str, end_reason: str, *, new_session_id: str | None = None
    ) -> None:
        """End a session; if it has already ended, the first reason is kept."""
        event = self.ids.new()
        self.engine.write(
            lambda tx: end(tx, event, session_id, end_reason, new_session_id=new_session_id)
        )

    def reopen_session(self, session_id: str) -> None:
        """Make an ended session writable again; this process becomes its owner."""
        event = self.ids.new()

        def change(tx: Tx) -> None:
            if reopen(tx, event, session_id):
                self._register_process(tx)
                process_identity.set_owner(tx, session_id, self.identity.process_id)

        self.engine.write(change)

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """All columns of a session, or None."""
        return self.engine.read(lambda reader: get(reader, session_id))

    def set_session_archived(self, session_id: str, archived: bool = True) -> bool:
        """Archive a conversation (all its rows), or unarchive it."""

        def archive(tx: Tx) -> bool:
            is_changed = False
            for row_id in lineage.conversation_of(tx, session_id):
                sql = "UPDATE sessions SET archived = ? WHERE id = ?"
                is_changed = tx.execute(sql, (int(archived), row_id)).rowcount > 0 or is_changed
            return is_changed

        return self.engine.write(archive)

    def set_session_pinned(self, session_id: str, pinned: bool = True) -> bool:
        """Pin a conversation (all its rows), which protects it from pruning."""

        def pin(tx: Tx) -> bool:
            rows = lineage.conversation_of(tx, session_id)
            changed = [set_fact(tx, row_id, "pinned", int(pinned)) for row_id in rows]
            return any(changed)

        return self.engine.write(pin)

    def update_session_model(self, session_id: str, model: str) -> None:
        """Change the model of the conversation."""
        self.engine.write(lambda tx: set_fact(tx, session_id, "model", model))

    def update_session_cwd(self, session_id: str, cwd: str) -> None:
        """Change the working folder of the conversation."""
        self.engine.write(lambda tx: set_fact(tx, session_id, "cwd", to_utf8_text(cwd)))

    def update_system_prompt(self, session_id: str, system_prompt: str) -> None:
        """Store the system prompt of the conversation."""

        def change(tx: Tx) -> None:
            for name, value in prompt_columns(tx, system_prompt).items():
                set_fact(tx, session_id, name, value)

        self.engine.write(change)

    def mark_session_read(self, session_id: str) -> bool:
        """Mark the session as read up to now; lists show later messages as unread."""
        now = self.clock.now()
        return self.engine.write(lambda tx: set_fact(tx, session_id, "last_read_at", now))

    def update_session_meta(
        self,
        session_id: str,
        model_config_json: dict[str, Any] | str,
        model: str | None = None,
    ) -> None:
        """Store the configuration of a conversation, a dictionary or JSON; markers are kept."""
        given = model_config_json
        new = decode_json(given) if isinstance(given, str) else given
        if not isinstance(new, dict):
            raise UsageError("the configuration of a conversation must be a JSON object")

        def change(tx: Tx) -> None:
            old = decode_json(require(tx, session_id)["model_config"])
            config = old if isinstance(old, dict) else {}
            markers = {name: value for name, value in config.items() if name.startswith("_")}
            set_fact(tx, session_id, "model_config", encode_json({**markers, **new}))
            if model is not None:
                set_fact(tx, session_id, "model", model)

        self.engine.write(change)

    def message_count(self, session_id: str | None = None) -> int:
        """Number of message rows, in one session or in all."""
        if session_id is None:
            return int(self.engine.read(lambda reader: reader.value(COUNT_MESSAGES)))
        return int(self.engine.read(lambda reader: reader.value(COUNT_MESSAGES_OF, (session_id,))))
