"""What worked when a command failed before: hints in tool results, and answers of `hermes fixes`.

Everything that is quoted comes from tool results and other conversations, so it is data: one line,
without control characters, shortened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.context.window import BYTES_PER_TOKEN
from hermes_agent.hints import HINT_START, MAX_HINT_TOKENS, Hints, NoHints
from hermes_agent.toolbox import parse_arguments
from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_core.isolate import Failure, attempt
from hermes_core.json_values import whole_characters
from hermes_core.messages import plain_text
from hermes_core.roles import may_use_tool
from hermes_core.terminal_text import one_line
from hermes_state.calls.commands import command_run, error_lines, find_error, joined, labels
from hermes_state.calls.history import RecordedCall
from hermes_state.calls.outcomes import REPEATED, REVERTED, shown
from hermes_state.portable.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hermes_agent.messages import ToolCall
    from hermes_conversation.history_scope import ConversationHistory
    from hermes_core.json_values import JsonObject
    from hermes_core.roles import Role
    from hermes_state.calls.commands import CommandRun
    from hermes_state.calls.outcomes import Outcome
    from hermes_state.store import SessionDB

COMMAND_TOOL: Final = "terminal"
FILE_TOOLS: Final = frozenset({"read_file", "write_file", "patch"})
MAX_ROWS: Final = 50  # that are compared for a hint
MAX_FOUND: Final = 500  # that are grouped for a person
MAX_TITLE: Final = 40
MAX_PROMPT: Final = 60
FOLDERS_THAT_PROVE: Final = 2  # other folders in which the same fix worked


class KnownFix(NamedTuple):
    """An error, and what worked after it the last time."""

    error: str
    command: str
    folder: str
    fix: str
    times: int
    at: float
    session_id: str
    title: str
    message_id: int  # of the call that failed
    fix_message_id: int


def hints_for(db: SessionDB, history: ConversationHistory, role: Role, *, is_on: bool) -> Hints:
    """The hints that a conversation gets: from what its person may read."""
    if not is_on or not may_use_tool(role, "session_search"):
        return NoHints()
    return HistoryHints(db, history)


class HistoryHints:
    """Hints from the outcomes of earlier calls; each at most once in a conversation."""

    def __init__(self, db: SessionDB, history: ConversationHistory) -> None:
        self._db = db
        self._history = history
        self._given: set[tuple[str, str]] = set()
        self._called: set[str] = set()  # sessions with calls in their turn

    def about(self, session_id: str, cwd: Path, call: ToolCall, result: str) -> str:
        """A hint about a command that failed, or a file that was changed back; or nothing."""
        self._called.add(session_id)
        find = self._about_command if call.name == COMMAND_TOOL else self._about_file
        if call.name != COMMAND_TOOL and call.name not in FILE_TOOLS:
            return ""
        found = attempt("look up a hint", lambda: find(session_id, cwd, call, result))
        return "" if isinstance(found, Failure) else found

    def turn_ended(self, session_id: str) -> None:
        """Read what the calls of a turn did; a turn without calls writes nothing."""
        if session_id not in self._called:
            return
        self._called.discard(session_id)
        attempt("read the calls of a turn", lambda: self._db.calls.fill_session(session_id))

    def _about_command(self, session_id: str, cwd: Path, call: ToolCall, result: str) -> str:
        arguments = parse_arguments(call.arguments) or {}
        stored = RecordedCall(session_id, 0, 0, 0.0, call.name, arguments, 1, result)
        run = command_run(stored, str(cwd))
        if run is None or run.error is None or not run.is_failure:
            return ""
        key = (session_id, run.error.fingerprint)
        if key in self._given:
            return ""
        rows = self._db.calls.fixes(run.error.fingerprint, MAX_ROWS, beside=session_id)
        row = _best(run, self._readable(rows))
        if row is None:
            return ""
        self._given.add(key)
        where = f"failed the same way on {self._place(row)}; "
        return _hint(where, redact(row.fix), f" then worked (message {row.fix_id})")

    def _about_file(self, session_id: str, cwd: Path, call: ToolCall, result: str) -> str:
        del result
        path = (parse_arguments(call.arguments) or {}).get("path")
        key = (session_id, path if isinstance(path, str) else "")
        if not key[1] or key in self._given:
            return ""
        rows = self._db.calls.reverted_changes(joined(str(cwd), key[1]), MAX_ROWS)
        rows = self._readable(
            row for row in rows if row.session_id != session_id or row.state != REVERTED
        )
        if not rows:
            return ""
        self._given.add(key)
        row = rows[0]
        what = "reverted" if row.state == REVERTED else "undone"
        reason = self._reason(row)
        start = f"a change of this file on {self._place(row)} was {what}"
        return _hint(
            f'{start} after "' if reason else start,
            reason,
            f"{reason and chr(34)} (message {row.fix_id or row.message_id})",
        )

    def _reason(self, row: Outcome) -> str:
        """The prompt after which a change was reverted."""
        if row.fix_id is None:
            return ""
        session_id = self._db.messages.session_of(row.fix_id)
        if session_id is None or not self._history.may_read(session_id):
            return ""
        prompt = self._db.calls.prompt_before(session_id, row.fix_id)
        return "" if prompt is None else _cut(_quoted(redact(plain_text(prompt[1]))), MAX_PROMPT)

    def _readable(self, rows: Iterable[Outcome]) -> list[Outcome]:
        may_read: dict[str, bool] = {}
        found = []
        for row in rows:
            if row.session_id not in may_read:
                may_read[row.session_id] = self._history.may_read(row.session_id)
            if may_read[row.session_id]:
                found.append(row)
        return found

    def _place(self, row: Outcome) -> str:
        title = self._history.get_session_title(row.session_id) or row.session_id
        return f'{human_format.date(row.at)} in "{_cut(_quoted(redact(title)), MAX_TITLE)}"'


def _best(run: CommandRun, rows: list[Outcome]) -> Outcome | None:
    """The latest fix of the same command in this folder, or one that worked in several others."""
    mine, current = labels(run.text), f"`{shown(run.text)}`"
    rows = [row for row in rows if row.fix != current and mine & labels(row.subject)]
    here = [row for row in rows if row.folder == run.folder]
    if here:
        return next((row for row in here if row.fix != REPEATED), here[0])
    folders: dict[str, set[str]] = {}
    for row in rows:
        folders.setdefault(row.fix, set()).add(row.folder)
    proven = (row for row in rows if len(folders[row.fix]) >= FOLDERS_THAT_PROVE)
    return next((row for row in proven if row.fix != REPEATED), None)


def _hint(start: str, quoted: str, end: str) -> str:
    """A line of at most MAX_HINT_TOKENS; what is quoted is shortened."""
    room = MAX_HINT_TOKENS * BYTES_PER_TOKEN - len((HINT_START + start + end).encode())
    while len(quoted.encode()) > room:
        quoted = f"{quoted[: max(0, len(quoted) - 8)].rstrip('…`')}…"
        if len(quoted) <= 1:
            break
    return HINT_START + start + quoted + end


def _quoted(text: str) -> str:
    return one_line(text).replace('"', "'").replace("`", "'")


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


# For people


def find_fixes(
    db: SessionDB, history: ConversationHistory, text: str, limit: int
) -> list[KnownFix]:
    """What worked after an error, latest first; the text is an output, a line, or a part of one."""
    text = whole_characters(text).replace("\0", "\N{REPLACEMENT CHARACTER}")
    error = find_error(text)
    rows = [] if error is None else db.calls.fixes(error.fingerprint, MAX_FOUND)
    rows = rows or db.calls.fixes_of_lines(error_lines(text), MAX_FOUND)
    line = " ".join(text.split())
    if not rows and line:
        rows = db.calls.fixes_like(line, MAX_FOUND)
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for row in rows:
        if row.kind == "command" and history.may_read(row.session_id):
            groups.setdefault((row.line, row.fix), []).append(row)
    return [_known(history, group) for group in list(groups.values())[:limit]]


def _known(history: ConversationHistory, rows: list[Outcome]) -> KnownFix:
    row = rows[0]
    title = history.get_session_title(row.session_id) or ""
    return KnownFix(
        row.error, row.subject, row.folder, row.fix, len(rows), row.at, row.session_id, title,
        row.message_id, row.fix_id or row.message_id,
    )  # fmt: skip


def as_text(fix: KnownFix) -> str:
    """A fix with the command that opens its message, for people."""
    times = f", {fix.times} times" if fix.times > 1 else ""
    command = f"hermes sessions show {fix.session_id} --around {fix.fix_message_id}"
    return (
        f"{human_format.local(fix.at)}  {fix.title or fix.session_id}{times}\n"
        f"  {fix.command}\n  failed: {one_line(fix.error)}\n  worked: {fix.fix}\n"
        f"  {with_command_name(command)}"
    )


def as_fields(fix: KnownFix) -> JsonObject:
    """A fix as JSON."""
    return fix._asdict()
