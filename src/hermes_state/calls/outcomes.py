"""What came of tool calls: commands that failed and what then worked, changes that were reverted.

A failure leads to a fix only if the same command worked later in the conversation, or one that
differs in nothing but options, its wrapper, or the spelling of its program.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.terminal_text import one_line
from hermes_state.calls.commands import (
    ASKING,
    TESTS,
    command_run,
    command_words,
    digest,
    joined,
    word_set,
)
from hermes_state.calls.edits import base_name
from hermes_state.portable.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_state.calls.commands import CommandRun, CommandWords, ErrorText
    from hermes_state.calls.edits import FileEdit
    from hermes_state.calls.history import RecordedCall

COMMAND: Final = "command"
EDIT: Final = "edit"
OPEN: Final = "open"  # what comes of it may still follow
CLOSED: Final = "closed"
FIXED: Final = "fixed"
KEPT: Final = "kept"
REVERTED: Final = "reverted"
TESTS_FAILED: Final = "tests failed"
WINDOW: Final = 40  # calls after a failure in which it may be fixed
MAX_STEPS: Final = 2  # that a fix names
MAX_SHOWN: Final = 100  # characters of a command
REPEATED: Final = "the same command again"
WRONG_FOLDER: Final = re.compile(
    r"not a git repository|package\.json|pyproject\.toml|cargo\.toml|go\.mod|no makefile"
    r"|makefile found|no rule to make target|gemfile|composer\.json",
    re.IGNORECASE,
)
WORD: Final = re.compile(r"[A-Za-z][\w-]{2,}")
COMMON_WORDS: Final = word_set(
    "error err the not found such file directory module modules named cannot could failed command "
    "line for and with from this that unable run npm pip python node install import exit code src "
    "lib app test tests main index bin tools docs"
)
RESTORING: Final = frozenset({"git checkout", "git restore"})


class Outcome(NamedTuple):
    """What came of a call."""

    message_id: int
    place: int
    session_id: str
    at: float
    kind: str
    subject: str  # a command, or the path of a file
    folder: str
    exit_code: int | None
    state: str
    fingerprint: str  # of an error; of the path of a file
    line: str  # of the first line of an error; of a change
    inverse: str  # of the opposite of a change
    error: str
    fix: str
    fix_id: int | None  # the message of what worked, or of what reverted a change


class _Step(NamedTuple):
    call: RecordedCall
    run: CommandRun | None
    paths: tuple[str, ...]  # that it changed


class _Fix(NamedTuple):
    text: str
    message_id: int


def find_outcomes(
    calls: Sequence[RecordedCall], folder: str, edits: Mapping[tuple[int, int], list[FileEdit]]
) -> list[Outcome]:
    """The outcomes of calls of a session that began in *folder*, in order."""
    steps = [
        _Step(
            call,
            command_run(call, folder),
            tuple(edit.path for edit in edits.get((call.message_id, call.place), ())),
        )
        for call in calls
    ]
    found: list[Outcome] = []
    for place, step in enumerate(steps):
        later = steps[place + 1 : place + 1 + WINDOW]
        if step.run is not None and step.run.error is not None and step.run.is_failure:
            found.append(_failure(step, step.run, step.run.error, later))
        for number, edit in enumerate(edits.get((step.call.message_id, step.call.place), ())):
            found.append(_change(step, edit, number, folder, later))
    return found


def file_key(path: str) -> str:
    """By what the outcomes of changes of a file are found."""
    return digest(f"file {path}")


def _failure(step: _Step, run: CommandRun, error: ErrorText, later: list[_Step]) -> Outcome:
    fix = _find_fix(step, run, error, later)
    state = OPEN if len(later) < WINDOW else CLOSED
    call = step.call
    return Outcome(
        call.message_id, 100 * call.place, call.session_id, call.at, COMMAND, shown(run.text),
        run.folder, run.exit_code, state if fix is None else FIXED, error.fingerprint, error.line,
        "", error.text, "" if fix is None else fix.text, None if fix is None else fix.message_id,
    )  # fmt: skip


def _change(step: _Step, edit: FileEdit, number: int, folder: str, later: list[_Step]) -> Outcome:
    """A change of a file; what reverts it is found in the store, also in other sessions."""
    call, path, name = step.call, edit.path, base_name(edit.path)
    new = sorted(line.digest.hex() for line in edit.lines if line.is_new)
    old = sorted(each.hex() for each in edit.removed)
    tested = next((s for s in later if s.run is not None and _is_test(s.run)), None)
    reverted = _restored(path, step, later)
    state = TESTS_FAILED if tested is not None and _has_failed(tested) else KEPT
    return Outcome(
        call.message_id, 100 * call.place + number + 1, call.session_id, call.at, EDIT, path,
        folder, None, state if reverted is None else REVERTED, file_key(path),
        digest(f"{name} {new} {old}"), digest(f"{name} {old} {new}"), "", "", reverted,
    )  # fmt: skip


def _is_test(run: CommandRun) -> bool:
    return any(TESTS.match(words.label) for words in run.parts)


def _has_failed(step: _Step) -> bool:
    return step.run is not None and step.run.has_worked is False


def _restored(path: str, step: _Step, later: list[_Step]) -> int | None:
    """The message of a command after another prompt that restored a file from git."""
    for each in later:
        if each.run is None or each.run.has_worked is not True:
            continue
        for words in each.run.parts:
            is_of_file = any(joined(each.run.folder, word) == path for word in words.operands[1:])
            is_later = each.call.prompt_id != step.call.prompt_id
            if words.label in RESTORING and is_of_file and is_later:
                return each.call.message_id
    return None


def _find_fix(step: _Step, failed: CommandRun, error: ErrorText, later: list[_Step]) -> _Fix | None:
    """What was done after a failure, if the command then worked."""
    changes: list[str] = []
    first: list[str] | None = None  # the changes after which the error was another one
    for each in later:
        run = each.run
        if run is None:
            changes += (f"an edit of `{_quoted(base_name(path))}`" for path in each.paths)
            continue
        if _is_same(failed, run):
            if run.has_worked:
                is_alone = each.call.prompt_id == step.call.prompt_id
                return _named(
                    changes if first is None else first, "", error, each, is_alone=is_alone
                )
            if run.error is not None and run.error.line != error.line and first is None:
                first = list(changes)
        elif run.has_worked and _replaces(failed, run, error):
            return _named(
                changes if first is None else [], f"`{shown(run.text)}`", error, each, is_alone=True
            )
        elif run.has_worked and any(_is_change(words) for words in run.parts):
            changes.append(f"`{shown(run.text)}`")
    return None


def _is_change(words: CommandWords) -> bool:
    return not words.is_reading and not TESTS.match(words.label)


def _named(
    changes: list[str], last: str, error: ErrorText, step: _Step, *, is_alone: bool
) -> _Fix | None:
    """A fix in words: the changes that have to do with the error, then the command."""
    changes = list(dict.fromkeys(changes))
    words = {word.casefold() for word in WORD.findall(error.text)} - COMMON_WORDS
    related = [each for each in changes if words & {w.casefold() for w in WORD.findall(each)}]
    if last or related:  # after another command, only changes that have to do with the error
        changes = related
    if len(changes) > MAX_STEPS or (not changes and not last and not is_alone):
        return None
    return _Fix(", then ".join(filter(None, [*changes, last])) or REPEATED, step.call.message_id)


def _is_same(failed: CommandRun, run: CommandRun) -> bool:
    """Whether a command was run again; options that only change what is printed do not count."""
    if failed.folder != run.folder:
        return False
    return failed.text == run.text or _plain(failed) == _plain(run)


def _plain(run: CommandRun) -> list[tuple[object, ...]]:
    return [(each.start, each.program, each.operands, each.options) for each in run.parts]


def _replaces(failed: CommandRun, run: CommandRun, error: ErrorText) -> bool:
    """Whether a command does the same as a failed one in another way."""
    mine, other = failed.parts, run.parts
    if len(mine) != 1 or not other or not ASKING.isdisjoint(other[-1].words):
        return False
    before, after = command_words(failed.text), other[-1]
    if failed.folder != run.folder:
        return before == after and WRONG_FOLDER.search(error.text) is not None
    if TESTS.match(before.label) or TESTS.match(after.label) or _only_looks(before):
        return before.program == after.program and (before.operands, before.options) == (
            after.operands,
            after.options,
        )
    if before.label == after.label:
        return _extends(before, after)
    return _is_like(before, after) and before.operands == after.operands


def _only_looks(words: CommandWords) -> bool:
    return words.is_reading and words.program != "git"


def _extends(before: CommandWords, after: CommandWords) -> bool:
    """Whether options were changed, and no operand but those of an added option."""
    if before.operands == after.operands:
        return True
    count = len(before.operands)
    if after.operands[:count] != before.operands or set(after.options) <= set(before.options):
        return False
    added = after.operands[count]
    return after.words[after.words.index(added) - 1].startswith("-")


def _is_like(before: CommandWords, after: CommandWords) -> bool:
    """Whether two programs have nearly the same name, or the same files to work on."""
    a, b = before.program.rstrip("0123456789."), after.program.rstrip("0123456789.")
    is_named_alike = bool(a and b) and (a == b or a.replace("-", " ") == after.label)
    return is_named_alike or any(re.search(r"\w[./]\w", word) for word in before.operands)


def shown(command: str) -> str:
    """A command as a quotation: one line without secrets and quotation marks of ours, shortened."""
    text = _quoted(redact(command))  # part of a secret is not recognized
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _quoted(text: str) -> str:
    return one_line(text).replace("`", "'")
