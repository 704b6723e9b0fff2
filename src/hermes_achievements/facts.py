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

from hermes_achievements.commands import BACKGROUND, labels
from hermes_achievements.history import Kind, SessionRow
from hermes_achievements.outcomes import outcome, parsed
from hermes_achievements.paths import files_of
from hermes_achievements.tools import ACTION_OPERATIONS, DELEGATE, FILE_OPERATIONS, SHELL, does

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_achievements.history import MessageRow

Fact = list[Any]

# Raised whenever a message can give other facts than before: everything is read again.
FACT_RULES: Final = 1

ID: Final = 0
AT: Final = 1
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
COPYING_SECONDS: Final = 60.0
LONGEST_TOOL_NAME: Final = 64
WHEN: Final = itemgetter(AT, ID)


def fact_of(row: MessageRow, facts: Sequence[Fact] = ()) -> Fact | None:
    """What *row* adds; None when it adds nothing. *facts* are those before it."""
    role = row.role
    if role == "tool":
        tool = clean(row.tool_name or "") or _asked_for(row.call_id, facts)
        code = outcome(row.content, does(tool))
        reference = crc32(row.call_id.encode()) if row.call_id else 0
        return [row.id, row.at, RESULT, _print(row, reference + 2), tool, reference, code]
    if role == "assistant":
        return [row.id, row.at, ASSISTANT, _print(row, 1), calls_of(row.tool_calls)]
    if role == "user" and not row.is_observed:
        return [row.id, row.at, USER, _print(row, 0), row.length]
    return None


def _asked_for(call_id: str | None, facts: Sequence[Fact]) -> str:
    """The tool that was called, where its result does not name it."""
    if not call_id:
        return ""
    reference = crc32(call_id.encode())
    for fact in reversed(facts):
        if fact[ROLE] == ASSISTANT:
            for call in fact[CALLS]:
                if call[1] == reference:
                    return str(call[0])
    return ""


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
    found = parsed(stored)
    if not isinstance(found, list):
        return []
    return [call for one in found if (call := _call(one))]


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
    reference = crc32(mark.encode(errors="replace")) if isinstance(mark, str) else 0
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
    found = parsed(stored) if isinstance(stored, (str, bytes)) else stored
    return found if isinstance(found, dict) else {}


class Book:
    """All facts of one session: of the messages it has, and of those it once had."""

    __slots__ = ("facts", "gone", "last_id", "session")

    def __init__(
        self, session: SessionRow, facts: list[Fact], gone: list[Fact], last_id: int
    ) -> None:
        self.session = session
        self.facts = facts
        self.gone = gone
        self.last_id = last_id

    def pack(self) -> bytes:
        """The book as the ledger keeps it."""
        return orjson.dumps([tuple(self.session), self.facts, self.gone, self.last_id])

    @classmethod
    def unpack(cls, stored: bytes) -> Book:
        """A book that was packed."""
        session, facts, gone, last_id = orjson.loads(stored)
        return cls(SessionRow(*session), facts, gone, last_id)

    def everything(self) -> list[Fact]:
        """Every fact in the order in which things happened."""
        return sorted([*self.facts, *self.gone] if self.gone else self.facts, key=WHEN)


def read_book(session: SessionRow, rows: Sequence[MessageRow], parents: Iterable[int]) -> Book:
    """The book of a session, from its rows; copies of other messages are left out."""
    facts: list[Fact] = []
    add_facts(facts, rows)
    if session.kind in (Kind.BRANCH, Kind.CONTINUATION):
        facts = without_copies(session, facts, parents)
    return Book(session, facts, [], rows[-1].id if rows else 0)


def add_facts(facts: list[Fact], rows: Iterable[MessageRow]) -> None:
    """Add what *rows* add, except copies."""
    for row in rows:
        if not row.is_copy:
            fact = fact_of(row, facts)
            if fact is not None:
                facts.append(fact)


def without_copies(session: SessionRow, facts: list[Fact], parents: Iterable[int]) -> list[Fact]:
    """Leave out what was copied from the parent when the session began.

    Programs that keep no record of copies write them in the first moments of the new
    session, or with the time of the original.
    """
    until = session.started_at + COPYING_SECONDS
    available: dict[int, int] = {}
    for one in parents:
        available[one] = available.get(one, 0) + 1
    if not available:
        return facts
    kept = []
    for fact in facts:
        left = available.get(fact[PRINT], 0)
        if left and fact[AT] <= until:
            available[fact[PRINT]] = left - 1
        else:
            kept.append(fact)
    return kept


def prints_of(rows: Iterable[MessageRow]) -> list[int]:
    """What recognises each message of a session."""
    return [fact[PRINT] for row in rows if (fact := fact_of(row)) is not None]


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
