"""Facts that the agent remembers, each with the messages that it rests on.

The text of a fact never changes: another text is another fact, which supersedes it. Each change is
recorded with what it replaced, so that it can be undone.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from hermes_core.errors import UsageError
from hermes_core.messages import plain_text
from hermes_state.files import GET_FILE, PUT_FILE
from hermes_state.messages.rows import decode_content
from hermes_state.repository import Repository
from hermes_state.search.tokens import composed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_state.engine.transaction import Reader, Tx

T = TypeVar("T")
Subject = Literal["user", "project", "machine"]
FactState = Literal["active", "superseded", "rejected", "stale"]
Author = Literal["owner", "agent", "review", "import"]
SUBJECTS: Final[tuple[Subject, ...]] = ("user", "project", "machine")
STATES: Final[tuple[FactState, ...]] = ("active", "superseded", "rejected", "stale")
CHECK: Final = "check"  # who makes the changes of the check of evidence
UNDO: Final = "undo"

COLUMNS: Final = (
    "fact_id, file, subject, folder, text, state, created_by, created_at, changed_at, successor,"
    " is_pinned, is_listed, times_used, last_used_at"
)
SELECT: Final = f"SELECT {COLUMNS} FROM hermes_fact"  # noqa: S608 - own names
INSERT: Final = """
    INSERT INTO hermes_fact
        (file, subject, folder, text, state, created_by, created_at, changed_at, is_listed)
    VALUES (?, ?, ?, ?, 'active', ?, ?, ?, ?)
"""
UPDATE: Final = """
    UPDATE hermes_fact SET state = ?, successor = ?, is_pinned = ?, subject = ?, folder = ?,
        changed_at = ? WHERE fact_id = ?
"""
SET_LISTED: Final = "UPDATE hermes_fact SET is_listed = ? WHERE fact_id = ?"
NOTE_USE: Final = """
    UPDATE hermes_fact SET times_used = times_used + 1, last_used_at = ? WHERE fact_id = ?
"""
ADD_EVIDENCE: Final = """
    INSERT INTO hermes_fact_evidence (fact_id, message_id, start, length, digest, said_at)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
IS_UNDONE: Final = "coalesce({0}.active, 1) = 0 AND coalesce({0}.compacted, 0) = 0"
# The state of a message that a compaction repeated is that of its last row.
EVIDENCE: Final = f"""
    SELECT e.fact_id, e.message_id, e.start, e.length, e.digest, e.said_at, m.session_id,
        CASE WHEN m.id IS NULL THEN 'deleted'
            WHEN EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = m.session_id)
                THEN 'in the trash'
            WHEN coalesce(m.finish_reason, '') = 'deleted' THEN 'deleted'
            WHEN coalesce(
                (SELECT CASE WHEN {IS_UNDONE.format("k")} THEN 1 ELSE 0 END
                    FROM hermes_copy c JOIN messages k ON k.id = c.message_id
                    WHERE c.origin_id = m.id AND k.session_id = m.session_id
                    ORDER BY k.id DESC LIMIT 1),
                CASE WHEN {IS_UNDONE.format("m")} THEN 1 ELSE 0 END) = 1 THEN 'undone'
            ELSE '' END, {{text}}
    FROM hermes_fact_evidence e LEFT JOIN messages m ON m.id = e.message_id
    WHERE e.fact_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))
    ORDER BY e.fact_id, e.said_at, e.start
"""  # noqa: S608 - own names
HAS_EVIDENCE: Final = """
    SELECT f.fact_id FROM hermes_fact f WHERE f.state IN ('active', 'stale')
        AND EXISTS (SELECT 1 FROM hermes_fact_evidence e WHERE e.fact_id = f.fact_id)
"""
INSERT_CHANGE: Final = """
    INSERT INTO hermes_fact_change (fact_id, event, made_at, made_by, reason, earlier)
    VALUES (?, ?, ?, ?, ?, ?)
"""
SELECT_CHANGES: Final = """
    SELECT change_id, fact_id, event, made_at, made_by, reason, earlier, is_undone
    FROM hermes_fact_change
"""
LAST_EVENT: Final = """
    SELECT c.event FROM hermes_fact_change c JOIN hermes_fact f ON f.fact_id = c.fact_id
    WHERE c.is_undone = 0 AND c.made_by NOT IN ('undo', 'check') AND {condition}
    ORDER BY c.change_id DESC LIMIT 1
"""
CHANGED_SINCE: Final = """
    SELECT 1 FROM hermes_fact_change WHERE fact_id = ? AND change_id > ? AND event <> ?
        AND is_undone = 0 AND made_by NOT IN ('undo', 'check') LIMIT 1
"""
MARK_UNDONE: Final = "UPDATE hermes_fact_change SET is_undone = 1 WHERE event = ?"


class Fact(NamedTuple):
    """A fact, its state and its use."""

    id: int
    file: str  # the file of the memory that lists it, below the Hermes folder
    subject: Subject
    folder: str  # of a project
    text: str
    state: FactState
    created_by: Author
    created_at: float
    changed_at: float
    successor: int | None  # the fact that supersedes it
    is_pinned: bool
    is_listed: bool  # whether the file has it
    times_used: int  # conversations whose prompt had it
    last_used_at: float | None


class NewFact(NamedTuple):
    """A fact to be stored."""

    file: str
    subject: Subject
    text: str
    created_by: Author
    folder: str = ""
    is_listed: bool = False


class Evidence(NamedTuple):
    """The place of a quotation in the text of a message."""

    message_id: int
    start: int
    length: int
    digest: str
    said_at: float


class Source(NamedTuple):
    """Evidence as it can be shown: the quotation, and why it does not count any longer."""

    fact_id: int
    evidence: Evidence
    session_id: str | None
    problem: str  # deleted, in the trash, undone or changed; empty for evidence that counts
    text: str


class FactChange(NamedTuple):
    """A recorded change of a fact."""

    id: int
    fact_id: int
    event: str
    made_at: float
    made_by: str
    reason: str
    earlier: dict[str, Any] | None  # None: the fact is new
    is_undone: bool


def digest_of(text: str) -> str:
    """The digest of a quotation."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class FactEditor:
    """Changes of facts in one transaction: they have one author, and are undone together."""

    def __init__(self, tx: Tx, event: str, made_by: str) -> None:
        self._tx = tx
        self._event = event
        self._made_by = made_by

    def facts(self, file: str) -> list[Fact]:
        """The facts of a file, oldest first."""
        return _facts(self._tx, "WHERE file = ?", (file,))

    def get(self, fact_id: int) -> Fact:
        """A fact; UsageError if there is none."""
        return _get(self._tx, fact_id)

    def sources(self, fact_ids: Iterable[int]) -> list[Source]:
        """The evidence of facts, without the words."""
        return _sources(self._tx, fact_ids, with_text=False)

    def add(self, fact: NewFact, evidence: Iterable[Evidence] = (), reason: str = "") -> int:
        """Store a fact; its number."""
        now = self._tx.clock.now()
        values = (fact.file, fact.subject, fact.folder, fact.text, fact.created_by, now, now)
        number = self._tx.insert(INSERT, (*values, int(fact.is_listed)), "fact_id")
        self.add_evidence(number, evidence)
        self._record(number, reason or "added", None)
        return number

    def add_evidence(self, fact_id: int, evidence: Iterable[Evidence]) -> None:
        """Add messages that a fact rests on."""
        self._tx.many(ADD_EVIDENCE, [(fact_id, *each) for each in evidence])

    def change(self, fact: Fact, reason: str, **values: Any) -> Fact:
        """Change the state, the pin or the subject of a fact."""
        changed = fact._replace(**values)
        if changed != fact:
            earlier = {name: getattr(fact, name) for name in values}
            self._write(changed)
            self._record(fact.id, reason, earlier)
        return changed

    def set_listed(self, fact_ids: Iterable[int], *, is_listed: bool) -> None:
        """Note which facts their file has."""
        self._tx.many(SET_LISTED, [(int(is_listed), fact_id) for fact_id in fact_ids])

    def shared_file(self, name: str) -> bytes | None:
        """The content of a file in the database."""
        content = self._tx.value(GET_FILE, (name,))
        return None if content is None else bytes(content)

    def put_shared_file(self, name: str, content: bytes) -> None:
        """Replace the content of a file in the database."""
        self._tx.run(PUT_FILE, (name, content, self._tx.clock.now()))

    def undo(self, event: str) -> list[FactChange]:
        """Undo the changes of an event, latest first; facts that were changed since are left."""
        changes = _changes(self._tx, "WHERE event = ? ORDER BY change_id DESC", (event,))
        for change in changes:
            fact = self.get(change.fact_id)
            if self._tx.value(CHANGED_SINCE, (fact.id, change.id, event)):
                continue
            values = {"state": "rejected"} if change.earlier is None else change.earlier
            self.change(fact, f"undone: {change.reason}", **values)
        self._tx.run(MARK_UNDONE, (event,))
        return changes

    def _write(self, fact: Fact) -> None:
        values = (fact.state, fact.successor, int(fact.is_pinned), fact.subject, fact.folder)
        self._tx.run(UPDATE, (*values, self._tx.clock.now(), fact.id))

    def _record(self, fact_id: int, reason: str, earlier: dict[str, Any] | None) -> None:
        text = None if earlier is None else json.dumps(earlier)
        now = self._tx.clock.now()
        self._tx.run(INSERT_CHANGE, (fact_id, self._event, now, self._made_by, reason, text))


class FactRepository(Repository):
    """The facts of a history, which may be those of several people."""

    @property
    def is_available(self) -> bool:
        """Whether the file has the tables; a file that was never opened for writing has not."""
        return "hermes_fact" in self.engine.columns.tables

    def edit(self, made_by: str, work: Callable[[FactEditor], T]) -> T:
        """Change facts in one transaction, which may run *work* again after a conflict."""
        event = self.ids.new()
        return self.engine.write(lambda tx: work(FactEditor(tx, event, made_by)))

    def of_file(self, file: str) -> list[Fact]:
        """The facts of a file of the memory, oldest first."""
        return self._read("WHERE file = ?", (file,))

    def all(self) -> list[Fact]:
        """All facts, oldest first."""
        return self._read("", ())

    def _read(self, condition: str, values: Sequence[Any]) -> list[Fact]:
        if not self.is_available:
            return []
        return self.engine.read(lambda reader: _facts(reader, condition, values))

    def get(self, fact_id: int) -> Fact:
        """A fact; UsageError if there is none."""
        if not self.is_available:
            raise UsageError(NO_FACT.format(fact_id))
        return self.engine.read(lambda reader: _get(reader, fact_id))

    def sources(self, fact_ids: Iterable[int]) -> list[Source]:
        """The evidence of facts, with the quoted words."""
        numbers = list(fact_ids)
        if not numbers or not self.is_available:
            return []
        return self.engine.read(lambda reader: _sources(reader, numbers, with_text=True))

    def changes(self, fact_id: int) -> list[FactChange]:
        """The history of a fact, oldest first."""
        condition = "WHERE fact_id = ? ORDER BY change_id"
        return self.engine.read(lambda reader: _changes(reader, condition, (fact_id,)))

    def of_event(self, event: str) -> list[FactChange]:
        """The changes that were made together."""
        condition = "WHERE event = ? ORDER BY change_id"
        return self.engine.read(lambda reader: _changes(reader, condition, (event,)))

    def last_event(self, *, file: str = "", fact_id: int | None = None) -> str | None:
        """The last event that can be undone: of a file, or of one fact."""
        condition, value = ("f.file = ?", file) if fact_id is None else ("f.fact_id = ?", fact_id)
        sql = LAST_EVENT.format(condition=condition)
        event: str | None = self.engine.read(lambda reader: reader.value(sql, (value,)))
        return event

    def note_use(self, fact_ids: Iterable[int]) -> None:
        """Count the use of facts in the prompt of a conversation."""
        numbers = list(fact_ids)
        if numbers:
            self.engine.write(
                lambda tx: tx.many(NOTE_USE, [(tx.clock.now(), number) for number in numbers])
            )

    def check(self, *, with_text: bool = True) -> list[Fact]:
        """Mark facts whose evidence is gone as stale, and those whose evidence is back as active.

        Returns the changed facts. Without the texts, quotations that were changed are not found.
        """
        if not self.is_available:
            return []

        def changes(reader: Reader) -> dict[int, FactState]:
            numbers = [row[0] for row in reader.rows(HAS_EVIDENCE)]
            facts = {fact.id: fact for fact in _facts(reader, "", ()) if fact.id in set(numbers)}
            sources = _sources(reader, numbers, with_text=with_text)
            supported = {source.fact_id for source in sources if not source.problem}
            wanted = {number: "active" if number in supported else "stale" for number in facts}
            return {
                number: state  # type: ignore[misc]
                for number, state in wanted.items()
                if facts[number].state != state and (state == "stale" or with_text)
            }

        if not self.engine.read(changes):
            return []

        def mark(editor: FactEditor, tx: Tx) -> list[Fact]:
            return [
                editor.change(editor.get(number), REASONS[state], state=state)
                for number, state in changes(tx).items()
            ]

        event = self.ids.new()
        return self.engine.write(lambda tx: mark(FactEditor(tx, event, CHECK), tx))


NO_FACT: Final = "There is no fact {}. `hermes memory list` shows all."
REASONS: Final = {"stale": "its evidence is gone", "active": "its evidence is back"}


def _facts(reader: Reader, condition: str, values: Sequence[Any]) -> list[Fact]:
    rows = reader.rows(f"{SELECT} {condition} ORDER BY fact_id", values)
    return [_fact(row) for row in rows]


def _fact(row: Sequence[Any]) -> Fact:
    fact = Fact(*row)
    return fact._replace(is_pinned=bool(fact.is_pinned), is_listed=bool(fact.is_listed))


def _get(reader: Reader, fact_id: int) -> Fact:
    found = _facts(reader, "WHERE fact_id = ?", (fact_id,))
    if not found:
        raise UsageError(NO_FACT.format(fact_id))
    return found[0]


def _sources(reader: Reader, fact_ids: Iterable[int], *, with_text: bool) -> list[Source]:
    sql = EVIDENCE.format(text="m.content" if with_text else "NULL")
    found = []
    for row in reader.rows(sql, (json.dumps(list(fact_ids)),)):
        evidence, text = Evidence(*row[1:6]), ""
        problem = row[7]
        if with_text and row[6] is not None:
            content = composed(plain_text(decode_content(row[8])))
            text = content[evidence.start : evidence.start + evidence.length]
            if digest_of(text) != evidence.digest:
                problem, text = problem or "changed", ""
        found.append(Source(row[0], evidence, row[6], problem, text))
    return found


def _changes(reader: Reader, condition: str, values: Sequence[Any]) -> list[FactChange]:
    changes = [FactChange(*row) for row in reader.rows(f"{SELECT_CHANGES} {condition}", values)]
    return [
        each._replace(
            earlier=None if each.earlier is None else json.loads(str(each.earlier)),
            is_undone=bool(each.is_undone),
        )
        for each in changes
    ]
