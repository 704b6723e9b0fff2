"""Questions of `hermes chat` before files are restored: the diff first, then a numbered choice."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from hermes_conversation import file_commands
from hermes_core import human_format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_cli.commands.chat.terminal_prompter import TerminalPrompter
    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.file_history import CheckpointSelection, FilePlan

MAX_DIFF_LINES: Final = 60
STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
CONVERSATION_AND_FILES: Final = "conversation and files"
CONVERSATION: Final = "conversation only"
FILES: Final = "files only"
CANCEL: Final = "cancel"
RESTORE: Final = "restore"
KEEP, OVERWRITE = "keep it", "overwrite it"


def print_outcome(line: str, text: str, out: CommandOutput) -> None:
    """Print the text of a command; a diff is coloured."""
    words = line.lower().split()
    if words[:1] == ["/diff"] or words[:2] == ["/checkpoints", "diff"]:
        print_diff(text.splitlines(), out)
    else:
        out.text(text)


def print_diff(lines: Iterable[str], out: CommandOutput) -> None:
    """Print lines of a unified diff."""
    for line in lines:
        is_head = line.startswith(("+++", "---", "diff "))
        out.text(line, "bold" if is_head else STYLES.get(line[:1], ""))


class FilePrompts:
    """Asks what to restore, where a command did not name it."""

    def __init__(
        self, conversation: Conversation, prompter: TerminalPrompter, out: CommandOutput
    ) -> None:
        self._conversation = conversation
        self._prompter = prompter
        self._out = out

    def asks(self, line: str) -> bool:
        """Whether a command may need a question."""
        words = line.lower().split()
        if words[:1] == ["/undo"]:
            files = self._conversation.files
            return files.is_available and self._conversation.exists
        return words[:2] == ["/checkpoints", "restore"]

    def ask(self, line: str) -> str:
        """The complete command after the answers; empty if the user cancelled."""
        name, _, words = line.partition(" ")
        if name.lower() == "/undo":
            return self._ask_undo(line, words)
        return self._ask_restore(words.strip().partition(" ")[2])

    def _ask_undo(self, line: str, words: str) -> str:
        request = file_commands.parse_undo(words)
        if request.scope:
            return line
        selection = self._conversation.files.of_last_prompts(request.exchanges)
        plan = selection.plan()
        if not plan.paths:
            return f"{line} conversation"
        self._show(plan)
        answer = self._choose(
            "What to undo?", [CONVERSATION_AND_FILES, CONVERSATION, FILES, CANCEL]
        )
        if answer in {CONVERSATION_AND_FILES, FILES}:
            self._restore(selection, plan)
        return (
            f"{line} {file_commands.CONVERSATION}"
            if answer in {CONVERSATION_AND_FILES, CONVERSATION}
            else ""
        )

    def _ask_restore(self, words: str) -> str:
        request = file_commands.parse_restore(words)
        selection = self._conversation.files.numbered(request.numbers)
        plan = selection.plan((*request.only, *request.force))
        if not plan.paths:
            return f"/checkpoints restore {words}"
        self._show(plan)
        if self._choose("Restore these files?", [RESTORE, CANCEL]) == RESTORE:
            self._restore(selection, plan, request.only, request.force)
        return ""

    def _show(self, plan: FilePlan) -> None:
        """Print what would be done: the files, then the diff."""
        self._out.text(f"Restoring would change {human_format.plural(len(plan.paths), 'file')}:")
        for item in plan.paths:
            note = f" ({item.problem})" if item.problem else ""
            self._out.text(f"  {item.name}: {item.change.kind} by the agent{note}")
        lines = plan.diff.splitlines()
        print_diff(lines[:MAX_DIFF_LINES], self._out)
        if len(lines) > MAX_DIFF_LINES:
            numbers = " ".join(map(str, plan.numbers))
            more = len(lines) - MAX_DIFF_LINES
            self._out.hint(f"… {more:,} more lines; `/checkpoints diff {numbers}` shows all")

    def _restore(
        self,
        selection: CheckpointSelection,
        plan: FilePlan,
        only: tuple[str, ...] = (),
        force: tuple[str, ...] = (),
    ) -> None:
        forced = list(force)
        for item in plan.refused:
            if not item.may_force or item.name in forced:
                continue
            question = f"{shlex.quote(item.name)} was changed since."
            if self._choose(question, [KEEP, OVERWRITE]) == OVERWRITE:
                forced.append(item.name)
        outcome = selection.restore(self._conversation.session_id, only, forced)
        self._out.text(file_commands.describe(outcome))

    def _choose(self, question: str, choices: list[str]) -> str:
        """The chosen one; anything else is invalid."""
        answer = self._prompter.clarify(question, choices)
        return answer if answer in choices else ""
