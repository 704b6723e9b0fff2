"""Facts: what one message adds, in about ninety bytes and without a word of its text.

A fact is a short list, because lists are what JSON stores and reads fastest:

    [id, at, "u", print, characters]                a user's message
    [id, at, "a", print, calls]                     an assistant's; a call is
                                                    [tool, reference, words]
    [id, at, "t", print, tool, reference, outcome]  a tool's result

`print` recognises the same message under another id. The words of a call depend on what
its tool does: programs for a shell, `extension:hash` for files, an action, a number.
"""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import orjson

from hermes_achievements.classification.outcomes import outcome, parsed
from hermes_achievements.classification.shell_commands import BACKGROUND, labels
from hermes_achievements.classification.tool_kinds import (
    ACTION_OPERATIONS,
    DELEGATE,
    FILE_OPERATIONS,
    SHELL,
    does,
    files_of,
)
from hermes_achievements.scan.history import Kind, SessionRow
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.scan.history import MessageRow

Fact = list[Any]

# Raised whenever a message can give other facts than before: everything is read again.
FACT_RULES: Final = 2

ID: Final = 0
TIME_FIELD: Final = 1
ROLE: Final = 2
PRINT: Final = 3
LENGTH: Final = 4
CALLS: Final = 4
TOOL: Final = 4
REFERENCE: Final = 5
OUTCOME: Final = 6

USER: Final = "u"
ASSISTANT: Final = "a"
RESULT: Final = "t"

PRINTED: Final = 200  # bytes of a message that its print is made of
COPYING_SECONDS: Final = 10.0
MAX_SUMMARIES: Final = 3  # messages before the first copy
EARLIEST: Final = 1_420_070_400.0  # 2015
LATEST: Final = 4_102_444_800.0  # 2100
LONGEST_TOOL_NAME: Final = 64
WHEN: Final = itemgetter(TIME_FIELD, ID)


def fact_of(row: MessageRow, tool: str | None = None) -> Fact | None:
    """What *row* adds; None when it adds nothing. *tool* is what a nameless result answers."""
    role = row.role
    if role == "tool":
        name = clean(_text(row.tool_name)) or tool or ""
        code = outcome(row.content, does(name))
        reference = reference_of(row.call_id)
        return [row.id, row.at, RESULT, _print(row, reference + 2), name, reference, code]
    if role == "assistant":
        return [row.id, row.at, ASSISTANT, _print(row, 1), calls_of(row.tool_calls)]
    if role == "user" and not row.is_observed:
        return [row.id, row.at, USER, _print(row, 0), row.length]
    return None


def reference_of(mark: Any) -> int:
    """What joins a result to its call."""
    return crc32(mark.encode(errors="replace")) if isinstance(mark, str) and mark else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=4096)
def clean(name: str) -> str:
    """A name as it can be stored: not too long, and nothing that UTF-8 cannot carry."""
    short = name[:LONGEST_TOOL_NAME]
    return short if short.isascii() else short.encode(errors="replace").decode()


def _print(row: MessageRow, start: int) -> int:
    """A number that the same message has wherever it is stored."""
    if row.tool_calls:
        start = crc32(row.tool_calls[:PRINTED], start)
    return crc32(row.content[:PRINTED], start) if row.content else start


def calls_of(stored: bytes | None) -> list[list[Any]]:
    """The tool calls of a message: name, reference and what the arguments say."""
    if not stored:
        return []
    result = parsed(stored)
    if not isinstance(result, list):
        return []
    return [call for item in result if (call := _call(item))]


def _call(one: Any) -> list[Any] | None:
    if not isinstance(one, dict):
        return None
    function = one.get("function")
    if not isinstance(function, dict):
        function = one
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return None
    tool = clean(name)
    mark = one.get("id") or one.get("call_id")
    reference = reference_of(mark)
    words = _words(does(tool), function.get("arguments"))
    return [tool, reference, words] if words else [tool, reference]


def _words(operation: str, stored: Any) -> list[str]:
    """What a call's arguments say, as far as anything here counts it."""
    if operation == SHELL:
        arguments = _arguments(stored)
        command = arguments.get("command") or arguments.get("cmd") or ""
        words = list(labels(command)) if isinstance(command, str) else []
        if arguments.get("background") is True and BACKGROUND not in words:
            words.append(BACKGROUND)
        return words
    if operation in FILE_OPERATIONS:
        return files_of(_arguments(stored))
    if operation in ACTION_OPERATIONS:
        action = _arguments(stored).get("action")
        return [clean(action.lower())] if isinstance(action, str) else []
    if operation == DELEGATE:
        tasks = _arguments(stored).get("tasks")
        return [str(len(tasks))] if isinstance(tasks, list) and tasks else ["1"]
    return []


def _arguments(stored: Any) -> dict[str, Any]:
    result = parsed(stored) if isinstance(stored, (str, bytes)) else stored
    return result if isinstance(result, dict) else {}


class Book:
    """All facts of one session: of the messages it has, and of those it once had."""

    __slots__ = ("facts", "gone", "last_id", "rows", "session")

    def __init__(
        self, session: SessionRow, facts: list[Fact], gone: list[Fact], last_id: int, rows: int
    ) -> None:
        self.session = session
        self.facts = facts
        self.gone = gone
        self.last_id = last_id
        self.rows = rows  # up to last_id, whatever they add

    def pack(self) -> bytes:
        """The book as the ledger keeps it."""
        parts = [tuple(self.session), self.facts, self.gone, self.last_id, self.rows]
        return orjson.dumps(parts)

    @classmethod
    def unpack(cls, stored: bytes) -> Book:
        """A book that was packed."""
        try:
            session, facts, gone, last_id, rows = orjson.loads(stored)
            return cls(SessionRow(*session), facts, gone, last_id, rows)
        except (ValueError, TypeError) as error:
            raise LedgerDamagedError(f"facts cannot be read: {error}") from error

    def everything(self) -> list[Fact]:
        """Every fact in the order in which things happened."""
        return sorted([*self.facts, *self.gone] if self.gone else self.facts, key=WHEN)


class FactReader:
    """The facts of one session, taken while its rows go by; only a row at a time is held."""

    def __init__(self, session: SessionRow) -> None:
        self.session = session
        self.facts: list[Fact] = []
        self.rows = 0
        self.last_id = 0
        self.knows_copies = False
        self._late: list[MessageRow] = []

    @classmethod
    def going_on(cls, session: SessionRow, book: Book) -> FactReader:
        """A reading that goes on behind what *book* has."""
        reading = cls(session)
        reading.facts, reading.rows, reading.last_id = book.facts, book.rows, book.last_id
        return reading

    def take(self, row: MessageRow) -> None:
        """One more row; copies add nothing."""
        self.rows += 1
        self.last_id = max(self.last_id, row.id)
        if row.is_copy:
            self.knows_copies = True
        elif row.role == "tool" and not row.tool_name:
            self._late.append(row)  # its call may be yet to come
        else:
            fact = fact_of(row)
            if fact is not None:
                self.facts.append(fact)

    def _asked(self) -> dict[int, str]:
        """The tools that were called, by what joins them to their results."""
        return {
            call[1]: call[0]
            for fact in self.facts
            if fact[ROLE] == ASSISTANT
            for call in fact[CALLS]
        }

    def finish(self) -> list[Fact]:
        """All facts in the order of their rows, each at a moment that can be true."""
        if self._late:
            asked = self._asked()
            results = [fact_of(row, asked.get(reference_of(row.call_id))) for row in self._late]
            self.facts += [fact for fact in results if fact is not None]
            self._late = []
        self.facts.sort(key=itemgetter(ID))
        _mend_moments(self.facts, self.session.started_at)
        return self.facts


def _mend_moments(facts: list[Fact], started_at: float) -> None:
    """A moment that cannot be true is replaced by that of the message before."""
    last = started_at if is_plausible(started_at) else None
    if last is None:
        last = next(
            (fact[TIME_FIELD] for fact in facts if is_plausible(fact[TIME_FIELD])), EARLIEST
        )
    for fact in facts:
        at = fact[TIME_FIELD]
        if type(at) is float and EARLIEST <= at < LATEST:
            last = at
        else:
            fact[TIME_FIELD] = float(at) if is_plausible(at) else last


def is_plausible(at: Any) -> bool:
    """Whether *at* can be when somebody talked to an agent."""
    return isinstance(at, int | float) and EARLIEST <= at < LATEST


def read_book(session: SessionRow, rows: Sequence[MessageRow], parents: Sequence[int]) -> Book:
    """The book of a session, from its rows; copies of other messages are left out."""
    reading = FactReader(session)
    for row in rows:
        reading.take(row)
    return book_from(reading, parents)


def book_from(reading: FactReader, parents: Sequence[int]) -> Book:
    """The book of what was read; *parents* are the prints of the session before it."""
    facts = reading.finish()
    session = reading.session
    if session.kind in (Kind.BRANCH, Kind.CONTINUATION) and not reading.knows_copies:
        facts = without_copies(session, facts, parents)
    return Book(session, facts, [], reading.last_id, reading.rows)


def without_copies(session: SessionRow, facts: list[Fact], parents: Sequence[int]) -> list[Fact]:
    """Leave out what was copied from the parent when the session began.

    Programs that keep no record of copies write them in the first moments of the new
    session, or with the time of the original: in the parent's order and in one run, behind
    a summary at most.
    """
    until = session.started_at + COPYING_SECONDS
    position = 0
    copied: list[int] = []
    for number, fact in enumerate(facts):
        try:
            index = parents.index(fact[PRINT], position) if fact[TIME_FIELD] <= until else -1
        except ValueError:
            index = -1
        if index >= 0:
            position = index + 1
            copied.append(number)
        elif copied or number >= MAX_SUMMARIES or session.kind != Kind.CONTINUATION:
            break
    left_out = frozenset(copied)
    return [fact for number, fact in enumerate(facts) if number not in left_out]


def remember_gone(book: Book, before: Book) -> None:
    """Carry over facts of messages that are no longer stored: they happened.

    A message that came back under another id is recognised and counted once.
    """
    known = [*book.facts, *book.gone]
    present = {fact[ID] for fact in known}
    here: dict[int, int] = {}
    for fact in known:
        here[fact[PRINT]] = here.get(fact[PRINT], 0) + 1
    earlier = [*before.facts, *before.gone]
    for fact in earlier:  # those still here under their own id match themselves
        if fact[ID] in present and here.get(fact[PRINT], 0):
            here[fact[PRINT]] -= 1
    for fact in earlier:
        if fact[ID] in present:
            continue
        if here.get(fact[PRINT], 0):
            here[fact[PRINT]] -= 1
        else:
            book.gone.append(fact)
