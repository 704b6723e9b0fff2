"""Session rows: creating, ending, reopening, updating."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, cast

from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.hooks import BoundaryKind
from hermes_state.delivery import boundaries
from hermes_state.engine import process_identity
from hermes_state.ledger.repository import COUNTED_COLUMNS, record_change
from hermes_state.messages.rows import decode_json, encode_json, to_utf8_text
from hermes_state.repository import Repository
from hermes_state.sessions import index, lifecycle, lineage
from hermes_state.sessions.lifecycle import AnnouncedBoundary, LifecycleChange, SessionState
from hermes_state.sessions.records import (
    EXTRA_COLUMNS,
    SessionRow,
    all_columns,
    other_columns,
    to_session,
    with_extras,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from hermes_core.ids import MessageIds
    from hermes_core.json_values import JsonObject
    from hermes_state.engine.transaction import Columns, Reader, Tx
    from hermes_state.engine.values import SqlValue

UPSERT_EXTRA = """
    INSERT INTO hermes_session_extra (session_id, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value
"""


def set_fact(tx: Tx, session_id: str, name: str, value: SqlValue) -> bool:
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


EXISTS = "SELECT 1 FROM sessions WHERE id = ?"
HAS_ROUTE = "SELECT 1 FROM hermes_route WHERE session_id = ? LIMIT 1"
END = "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL"
REOPEN = """
    UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ? AND ended_at IS NOT NULL
"""
NEXT_EPOCH = "UPDATE hermes_session_index SET epoch = epoch + 1 WHERE session_id = ?"
INSERT_PROMPT = "INSERT INTO system_prompts (hash, prompt) VALUES (?, ?) ON CONFLICT DO NOTHING"
SELECT_PROMPT = "SELECT prompt FROM system_prompts WHERE hash = ?"
COUNT_MESSAGES = "SELECT count(*) FROM messages"
COUNT_MESSAGES_OF = "SELECT count(*) FROM messages WHERE session_id = ?"


def create(tx: Tx, session_id: str, facts: Mapping[str, SqlValue]) -> bool:
    """Create a session row, or fill in missing columns of an existing one; whether it is new."""
    facts = {name: value for name, value in facts.items() if value is not None}
    if (prompt := facts.pop("system_prompt", None)) is not None:
        facts.update(prompt_columns(tx, str(prompt)))
    columns = {n: v for n, v in facts.items() if tx.columns.session_has(n)}
    is_new = lifecycle.state_of(tx, session_id) is SessionState.ABSENT
    lifecycle.plan(tx, session_id, LifecycleChange.BEGIN)
    if is_new:
        columns.setdefault("started_at", tx.clock.now())
        names = ", ".join(["id", *columns])
        placeholders = ", ".join("?" * (len(columns) + 1))
        sql = f"INSERT INTO sessions ({names}) VALUES ({placeholders})"  # noqa: S608 - known columns
        tx.execute(sql, (session_id, *columns.values()))
    else:
        for name in columns.keys() - {"started_at", "source"}:
            sql = f"UPDATE sessions SET {name} = coalesce({name}, ?) WHERE id = ?"  # noqa: S608 - known
            tx.execute(sql, (columns[name], session_id))
    for name in facts.keys() - columns.keys():
        if name in EXTRA_COLUMNS:
            set_fact(tx, session_id, name, facts[name])
    if is_new:
        tx.execute(NEXT_EPOCH, (session_id,))  # if the ID was used before and purged
        index.reindex(tx, session_id)
        index.update_family_positions(tx, session_id)
    return is_new


def prompt_columns(tx: Tx, prompt: str) -> dict[str, SqlValue]:
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
    planned = lifecycle.plan(tx, session_id, LifecycleChange.END)
    if planned.announced is AnnouncedBoundary.NOTHING:
        return False
    at = tx.clock.now() if ended_at is None else ended_at
    tx.execute(END, (at, reason, session_id))
    process_identity.clear_participants(tx, session_id)
    record_change(tx, session_id)
    boundaries.announce(
        tx,
        event_id,
        session_id,
        lifecycle.kind_of(reason),
        reason,
        is_final=planned.announced is AnnouncedBoundary.FINAL,
        old_session_id=session_id,
        new_session_id=new_session_id,
    )
    if reason in ("compression", "branched"):
        index.update_family_positions(tx, session_id)
    return True


def reopen(tx: Tx, event_id: str, session_id: str, *, old_session_id: str | None = None) -> bool:
    """Reopen an ended session, which starts a new epoch.

    *old_session_id* is the conversation that its place had before, unless an event of that
    conversation names this one.
    """
    planned = lifecycle.plan(tx, session_id, LifecycleChange.REOPEN)
    if planned.announced is AnnouncedBoundary.NOTHING:
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
        is_final=planned.announced is AnnouncedBoundary.FINAL,
        old_session_id=old_session_id,
        new_session_id=session_id,
    )
    index.update_family_positions(tx, session_id)
    return True


def switch(
    tx: Tx, ids: MessageIds, old_id: str, new_id: str, reason: str, *, ends_old: bool = True
) -> bool:
    """Move a place from one conversation to another; whether the other one was reopened.

    Each session that changes has one event. Exactly one of the events names both sessions, so
    that the place's reset is announced once; without any row there is nothing to announce.
    """
    is_left = ends_old and end(tx, ids.new(), old_id, reason, new_session_id=new_id)
    previous = None if is_left else old_id
    is_reopened = reopen(tx, ids.new(), new_id, old_session_id=previous)
    if is_left or is_reopened:
        return is_reopened
    states = {name: lifecycle.state_of(tx, name) for name in (old_id, new_id)}
    is_named_by_old = states[old_id] is SessionState.OPEN or states[new_id] is SessionState.ABSENT
    subject = old_id if is_named_by_old else new_id
    if states[subject] is not SessionState.ABSENT:
        kind = lifecycle.KIND_OF_REASON.get(reason, BoundaryKind.NEW)
        places = {"old_session_id": old_id, "new_session_id": new_id}
        announce(tx, ids.new(), subject, kind, reason, **places)
    return False


def announce(
    tx: Tx, event_id: str, session_id: str, kind: BoundaryKind, reason: str, **ids: str | None
) -> None:
    """Announce a boundary that does not change the state of a conversation."""
    planned = lifecycle.plan(tx, session_id, LifecycleChange.PASS)
    is_final = planned.announced is AnnouncedBoundary.FINAL
    boundaries.announce(tx, event_id, session_id, kind, reason, is_final=is_final, **ids)


def get(reader: Reader, session_id: str) -> SessionRow | None:
    """A session with all columns, including its system prompt."""
    row = reader.row(reader.prepared(_select_session), (session_id,))
    if row is None:
        return None
    session = to_session(row, len(reader.prepared(other_columns)))
    return with_extras(reader, [session])[0]


def _select_session(columns: Columns) -> str:
    return f"SELECT {all_columns(columns)} FROM sessions s WHERE s.id = ?"  # noqa: S608 - file's names


def require(reader: Reader, session_id: str) -> SessionRow:
    """Like `get`, but raise SessionNotFoundError if the session does not exist."""
    session = get(reader, session_id)
    if session is None:
        raise SessionNotFoundError(f"session not found: {session_id}")
    return session


class SessionFacts(TypedDict, total=False):
    """Further columns of a new session."""

    session_key: str | None
    chat_id: str | None
    chat_type: str | None
    thread_id: str | None
    display_name: str | None
    origin_json: str | None
    profile_name: str | None
    git_branch: str | None
    git_repo_root: str | None
    title_source: str | None


def archive(tx: Tx, session_id: str, archived: bool) -> bool:
    """Archive a conversation (all its rows), or unarchive it; whether there is one."""
    sql = "UPDATE sessions SET archived = ? WHERE id = ?"
    rows = lineage.conversation_of(tx, session_id)
    changed = [tx.execute(sql, (int(archived), row_id)).rowcount for row_id in rows]
    return sum(changed) > 0


class SessionRepository(Repository):
    """Lifecycle and columns of sessions."""

    def create_session(
        self,
        /,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: JsonObject | str | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        cwd: str | None = None,
        started_at: float | None = None,
        is_owned: bool = True,
        **facts: Unpack[SessionFacts],
    ) -> str:
        """Create a session, or fill in missing columns of an existing row.

        Returns its ID. This process participates in the session until it ends or is left:
        if the last participant dies, the session ends as crashed. `facts` are further columns:
        session_key, chat_id, chat_type, thread_id, display_name, origin_json, profile_name,
        git_branch, git_repo_root.
        """
        columns: dict[str, SqlValue] = {
            "source": source,
            "model": model,
            "model_config": encode_json(model_config),
            "system_prompt": system_prompt,
            "user_id": user_id,
            "parent_session_id": parent_session_id,
            "cwd": to_utf8_text(cwd),
            "started_at": started_at,
        }
        columns.update(cast("dict[str, str | None]", facts))

        def begin(tx: Tx) -> None:
            is_new = create(tx, session_id, columns)
            if is_owned and is_new:
                self._register_process(tx)
                process_identity.join(tx, session_id, self.identity.process_id)

        self.engine.write(begin)
        return session_id

    def ensure_session(
        self,
        /,
        session_id: str,
        source: str = "unknown",
        model: str | None = None,
        **facts: Any,
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
        """Make a session writable again if it has ended; this process participates in it.

        The conversation of a chat has no participants: only a turn can die there.
        """
        if self.engine.read(lambda reader: self._is_open_here(reader, session_id)):
            return
        event = self.ids.new()

        def change(tx: Tx) -> None:
            reopen(tx, event, session_id)
            self._join(tx, session_id)

        self.engine.write(change)

    def _is_open_here(self, reader: Reader, session_id: str) -> bool:
        """Whether the session is open and this process need not join it."""
        if lifecycle.state_of(reader, session_id) is not SessionState.OPEN:
            return False
        return reader.value(HAS_ROUTE, (session_id,)) is not None or self._participates(
            reader, session_id
        )

    def _participates(self, reader: Reader, session_id: str) -> bool:
        found = process_identity.participants(reader, session_id, self.identity, self.clock)
        return self.identity.process_id in found

    def _join(self, tx: Tx, session_id: str) -> None:
        is_open = lifecycle.state_of(tx, session_id) is SessionState.OPEN
        if is_open and tx.value(HAS_ROUTE, (session_id,)) is None:
            self._register_process(tx)
            process_identity.join(tx, session_id, self.identity.process_id)

    def leave(self, session_id: str, end_reason: str, *, new_session_id: str | None = None) -> bool:
        """Leave a conversation; whether it ended.

        It ends if this process wrote to it and no other process, and no chat, has it open. A
        process that only read it changes nothing. *new_session_id* is the conversation with
        which the place continues.
        """
        if not self.engine.read(lambda reader: self._participates(reader, session_id)):
            return False
        event = self.ids.new()

        def change(tx: Tx) -> bool:
            is_alone = self._is_alone(tx, session_id)
            process_identity.leave(tx, session_id, self.identity.process_id)
            return is_alone and end(
                tx, event, session_id, end_reason, new_session_id=new_session_id
            )

        return self.engine.write(change)

    def may_end(self, session_id: str) -> bool:
        """Whether leaving ends the conversation."""
        return self.engine.read(lambda reader: self._is_alone(reader, session_id))

    def _is_alone(self, reader: Reader, session_id: str) -> bool:
        """Whether this process wrote to a conversation that no other process or chat has open."""
        found = process_identity.participants(reader, session_id, self.identity, self.clock)
        has_route = reader.value(HAS_ROUTE, (session_id,)) is not None
        return found == {self.identity.process_id} and not has_route

    def switch(
        self, old_session_id: str, new_session_id: str, reason: str, *, ends_old: bool = True
    ) -> None:
        """Announce that a terminal continues with another conversation, which is reopened.

        Without *ends_old*, the conversation that the terminal leaves stays open.
        """

        def change(tx: Tx) -> None:
            if switch(tx, self.ids, old_session_id, new_session_id, reason, ends_old=ends_old):
                self._join(tx, new_session_id)
            if not ends_old:
                process_identity.leave(tx, old_session_id, self.identity.process_id)

        self.engine.write(change)

    def find(self, session_id: str) -> SessionRow | None:
        """A session with its system prompt, or None."""
        return self.engine.read(lambda reader: get(reader, session_id))

    def set_session_archived(self, session_id: str, archived: bool = True) -> bool:
        """Archive a conversation (all its rows), or unarchive it."""

        return self.engine.write(lambda tx: archive(tx, session_id, archived))

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
        model_config_json: JsonObject | str,
        model: str | None = None,
    ) -> None:
        """Store the configuration of a conversation, a dictionary or JSON; markers are kept."""
        given = model_config_json
        new = decode_json(given) if isinstance(given, str) else given
        if not isinstance(new, dict):
            raise UsageError("the configuration of a conversation must be a JSON object")

        def change(tx: Tx) -> None:
            old = decode_json(require(tx, session_id).model_config)
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
