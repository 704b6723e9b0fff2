"""Slash commands about files that a conversation changed: /diff, /checkpoints, /undo files."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.records import RESTORE
from hermes_conversation.file_history import NO_CHANGES
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.file_history import CheckpointSelection, FileHistory, FileOutcome

DIFF_HINT: Final = "[all|last|NUMBER]"
CHECKPOINTS_HINT: Final = "[diff NUMBER|restore NUMBER [PATH]]"
UNDO_HINT: Final = "[number] [conversation|files|both]"
CHECKPOINTS_USAGE: Final = (
    "Usage: /checkpoints, /checkpoints diff NUMBER, or /checkpoints restore NUMBER [PATH] "
    "[--force PATH]"
)
CONVERSATION, FILES, BOTH = "conversation", "files", "both"
UNDO_SCOPES: Final = (CONVERSATION, FILES, BOTH)


class UndoRequest(NamedTuple):
    """How many exchanges to undo, and what of them; an empty scope was not given."""

    exchanges: int = 1
    scope: str = ""


def parse_undo(words: str) -> UndoRequest:
    """Read the arguments of /undo."""
    request = UndoRequest()
    for word in words.lower().split():
        if word in UNDO_SCOPES:
            request = request._replace(scope=word)
        elif word.isdigit() and int(word) > 0:
            request = request._replace(exchanges=int(word))
        else:
            raise UsageError(
                f"Invalid number of exchanges {word!r}. Examples: /undo 2, /undo 2 files"
            )
    return request


class RestoreRequest(NamedTuple):
    """Checkpoints to undo, paths to limit that to, and paths to overwrite."""

    numbers: tuple[int, ...]
    only: tuple[str, ...] = ()
    force: tuple[str, ...] = ()


def parse_restore(words: str) -> RestoreRequest:
    """Read the arguments of /checkpoints restore or diff."""
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"{error}. {CHECKPOINTS_USAGE}") from None
    numbers: list[int] = []
    only: list[str] = []
    force: list[str] = []
    rest = iter(parts)
    for part in rest:
        if part == "--force":
            force.append(next(rest, ""))
        elif part.isdigit() and not only:
            numbers.append(int(part))
        else:
            only.append(part)
    if not numbers or "" in force:
        raise UsageError(CHECKPOINTS_USAGE)
    return RestoreRequest(tuple(numbers), tuple(only), tuple(force))


def diff(conversation: Conversation, words: str) -> str:
    """What the conversation changed: all of it, its last turn, or one checkpoint."""
    return selected(conversation, words).diff() or "The changes cancel each other out."


def selected(conversation: Conversation, words: str) -> CheckpointSelection:
    """The checkpoints that the argument of /diff names."""
    files, word = conversation.files, words.strip().lower()
    if word not in {"", "all", "last"} and not word.isdigit():
        raise UsageError(f"Usage: /diff {DIFF_HINT}")
    if word.isdigit():
        return files.numbered([int(word)])
    found = files.last() if word == "last" else files.all()
    if not found:
        raise UsageError(NO_CHANGES)
    return found


def checkpoints(conversation: Conversation, words: str) -> str:
    """List checkpoints, show what one changed, or undo it."""
    verb, _, rest = words.strip().partition(" ")
    if verb in {"", "list"}:
        return "\n".join(listed(conversation)) or NO_CHANGES
    if verb == "diff":
        return conversation.files.numbered(parse_restore(rest).numbers).diff()
    if verb != "restore":
        raise UsageError(CHECKPOINTS_USAGE)
    return describe(restore(conversation, parse_restore(rest)))


def restore(conversation: Conversation, request: RestoreRequest) -> FileOutcome:
    """Take checkpoints of the conversation back."""
    selection = conversation.files.numbered(request.numbers)
    return selection.restore(conversation.session_id, request.only, request.force)


def listed(conversation: Conversation) -> list[str]:
    """A line for each checkpoint, newest first."""
    prompts = {prompt.message_id: prompt.text for prompt in conversation.prompts()}
    now = time.time()
    return [
        checkpoint_line(record, prompts.get(record.message_id, ""), now)
        for record in reversed(conversation.files.all().records)
    ]


def checkpoint_line(record: Checkpoint, prompt: str, now: float) -> str:
    """A checkpoint in one line."""
    files = human_format.plural(record.files, "file")
    parts = [
        f"{record.number:>5}",
        f"{human_format.ago(record.started_at, now):>12}",
        f"{files:>9}",
    ]
    return "  ".join([*parts, about(record, prompt)]).rstrip()


def about(record: Checkpoint, prompt: str) -> str:
    """What a checkpoint belongs to, and what to know about it."""
    text = " ".join(prompt.split())[:60]
    if record.kind == RESTORE:
        text = f"restore of {', '.join(map(str, record.restored))}"
    notes = []
    if record.is_interrupted:
        notes.append("interrupted: may include changes made after it")
    if record.is_shared:
        notes.append("another conversation worked in the folder at the same time")
    return " ".join([text, *(f"({note})" for note in notes)]).strip()


def describe(outcome: FileOutcome, command: str = "/checkpoints restore {}") -> str:
    """The result of a restore in words; *command* is how it is called."""
    lines = []
    if outcome.restored:
        files = human_format.plural(len(outcome.restored), "file")
        lines.append(f"Restored {files}: {', '.join(outcome.restored)}")
    elif not outcome.refused:
        lines.append("Nothing to restore: the files already have that state.")
    for item in outcome.refused:
        advice = f"; overwrite it with --force {shlex.quote(item.name)}" if item.may_force else ""
        lines.append(f"Not restored: {item.name} ({item.problem}{advice})")
    if outcome.undo_numbers:
        numbers = " ".join(map(str, outcome.undo_numbers))
        lines.append(f"{command.format(numbers)} undoes this.")
    return "\n".join(lines)


def undo_files(conversation: Conversation, count: int) -> str:
    """Undo what the last exchanges changed in files."""
    selection = conversation.files.of_last_prompts(count)
    if not selection:
        return "These messages have not changed any files."
    return describe(selection.restore(conversation.session_id))


def kept_files_notice(selection: CheckpointSelection) -> str:
    """What remains changed in files after the messages alone were undone; may be empty."""
    if not selection:
        return ""
    count = len(selection.plan().paths)
    if not count:
        return ""
    files = human_format.plural(count, "changed file")
    numbers = " ".join(map(str, selection.numbers))
    return f"Their {files} stay; /checkpoints restore {numbers} restores them."


def undone_files_notice(history: FileHistory, message_id: int) -> str:
    """What remains undone in files after the messages from a prompt on were restored."""
    if not message_id or not history.is_available:
        return ""
    turns = set(history.since_prompt(message_id).numbers)
    restores = [record for record in history.all().records if record.kind == RESTORE]
    undone = {number for record in restores for number in record.restored}
    numbers = [
        record.number
        for record in restores
        if turns & set(record.restored) and record.number not in undone
    ]
    count = len(history.numbered(numbers).plan().paths)
    if not count:
        return ""
    files, listed = human_format.plural(count, "file"), " ".join(map(str, numbers))
    return f"Undone changes of {files} stay undone; /checkpoints restore {listed} redoes them."
