"""The line mode of `hermes chat`: one prompt after the other, on any terminal."""

from __future__ import annotations

import codecs
import contextlib
import functools
import itertools
import locale
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.system import trust
from hermes_conversation import agent_factory, slash_commands
from hermes_conversation.input_lines import memory_note, shell_command
from hermes_conversation.pending_input import PendingInput
from hermes_conversation.slash_commands import Surface
from hermes_core import clipboard, paths
from hermes_core.config.file import ConfigFile
from hermes_core.errors import HermesError, LeaseTakenError, UsageError
from hermes_tui.input_history import InputHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from hermes_cli.commands.chat.shutdown import ChatShutdown
    from hermes_cli.commands.chat.turn_printer import TurnPrinter
    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation

PROMPT: Final = "> "
NO_OUTCOME: Final = slash_commands.CommandOutcome()
MENTION: Final = re.compile(r'(?:^|(?<=\s))@"?([^\s"@]*)$')
ARGUMENT: Final = re.compile(r"/(\S+) +(\S*)$")


class ChatRepl:
    """Reads prompts and prints answers until the user exits."""

    def __init__(
        self,
        conversation: Conversation,
        printer: TurnPrinter,
        shutdown: ChatShutdown,
        out: CommandOutput,
    ) -> None:
        self._conversation = conversation
        self._printer = printer
        self._shutdown = shutdown
        self._out = out

    def run(self) -> int:
        """Run the loop; return the exit code."""
        lines = LineReader(self._conversation, self._shutdown, self._out)
        self._out.note(
            f"Hermes, {self._conversation.agent.model}, mode {self._conversation.mode}. "
            "Type /help for commands, Ctrl+D to exit."
        )
        if not self._conversation.exists:
            self._show_found_model()
        next_input, typed = "", self._restore()
        while not self._shutdown.is_exiting:
            line = next_input or lines.read(typed)
            next_input, typed = "", ""
            if line is None:
                break
            if line.startswith("/"):
                outcome = self._command(line.strip())
                if outcome.leave:
                    break
                next_input, typed = outcome.say, outcome.fill
            elif line.strip() and not self._is_own_line(line):
                typed = self._run_turn(line)
        return self._shutdown.code

    def _show_found_model(self) -> None:
        """Say that a model is used because its key was found."""
        settings = ConfigFile.of_home().settings()
        notice = agent_factory.environment_notice(settings, self._conversation.options)
        if notice:
            self._out.note(notice)
            self._printer.shown_notice = notice

    def _restore(self) -> str:
        """Attach the pictures of input that a crashed process did not send; return its text."""
        restored = PendingInput(self._conversation).restore()
        for path in restored.images:
            try:
                self._out.note(f"Attached: {self._conversation.attach(Path(path)).name}")
            except HermesError as error:
                self._out.error(str(error))
        return restored.text

    def _is_own_line(self, line: str) -> bool:
        """Run `!command` or keep `#text`; whether the line is one of them."""
        command, note = shell_command(line), memory_note(line)
        try:
            if command:
                output = self._conversation.run_shell(command)
                self._out.text(output.text)
                if output.code:
                    self._out.note(f"exit code {output.code}")
            elif note:
                self._out.note(f"Remembered in {self._conversation.remember(note)}")
        except HermesError as error:
            self._out.error(str(error))
        return bool(command or note)

    def _run_turn(self, line: str) -> str:
        """Run a turn; return the line if it could not be sent."""
        try:
            with self._shutdown.turn():
                self._printer.run_turn(line)
        except LeaseTakenError as error:
            self._out.error(f"{error}. Run `hermes -c` to watch it.")
            return line
        return ""

    def _command(self, line: str) -> slash_commands.CommandOutcome:
        try:
            if line == "/trust" and self._out.is_watched:
                if trust.review(self._conversation.agent.cwd, self._out) == 0:
                    self._conversation.reload()
                return NO_OUTCOME
            outcome = slash_commands.run(self._conversation, line, Surface.TERMINAL)
        except HermesError as error:
            self._out.error(str(error))
            return NO_OUTCOME
        if outcome.copy:
            copy(outcome.copy)
        if outcome.text:
            self._out.text(outcome.text)
        if outcome.is_handed_off:
            session_id = self._conversation.continue_with_new()
            self._out.text(f"Started a new conversation: {session_id}")
        if outcome.stop or outcome.answer:
            self._out.note("No turn is running.")
        return outcome._replace(say=outcome.say or outcome.steer or outcome.queue)


class LineReader:
    """Reads lines with the editor of the terminal: recalled inputs, completion with Tab.

    A pasted text of several lines is one input. Python's readline module is missing in some
    builds of Python, and uses the encoding of the locale: where that is not UTF-8 (LC_ALL=C), it
    refuses texts of the history. Lines are read without it there.
    """

    def __init__(
        self, conversation: Conversation, shutdown: ChatShutdown, out: CommandOutput
    ) -> None:
        self._conversation = conversation
        self._shutdown = shutdown
        self._out = out
        self._history = InputHistory(prompts_path())
        self._readline: ModuleType | None = None
        if codecs.lookup(locale.nl_langinfo(locale.CODESET)).name != "utf-8":
            return
        try:
            import readline  # noqa: PLC0415 - changes the terminal; only for the line mode
        except ImportError:
            return
        self._readline = readline
        readline.set_auto_history(False)
        readline.set_completer_delims(" \t\n")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        readline.parse_and_bind("set enable-bracketed-paste on")
        if ConfigFile.of_home().settings().get_bool("display.vim_keys"):
            readline.parse_and_bind("set editing-mode vi")
            readline.parse_and_bind("set show-mode-in-prompt on")
        for text in self._history.texts:
            readline.add_history(text)

        def complete(_word: str, number: int) -> str | None:
            before = readline.get_line_buffer()[: readline.get_endidx()]
            return next(itertools.islice(completions(conversation, before), number, None), None)

        readline.set_completer(complete)

    def read(self, typed: str) -> str | None:
        """A line, prefilled with *typed*; None at the end of input."""
        while True:
            if self._readline is not None:
                self._readline.set_startup_hook(
                    functools.partial(self._readline.insert_text, typed)
                )
            try:
                with self._shutdown.prompt():
                    line = input(PROMPT)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if self._shutdown.is_second_interrupt():
                    return None
                self._out.text("")
                typed = ""  # Ctrl+C clears the line
                continue
            if typed and self._is_command(line.removeprefix(typed)):  # typed after the suggestion
                line = line.removeprefix(typed)
            if line.strip():
                self._history.add(line)
                if self._readline is not None:
                    self._readline.add_history(line)
            return line

    def _is_command(self, text: str) -> bool:
        """Whether a text is a known command, not the rest of a path."""
        name = text[1:].split(maxsplit=1)[0] if text.startswith("/") and text[1:].strip() else ""
        try:
            slash_commands.find(name, slash_commands.project_folder(self._conversation))
        except UsageError:
            return False
        return True


def completions(conversation: Conversation, before: str) -> Iterator[str]:
    """What may replace the word before the cursor: a command, its argument, a mentioned file."""
    mention, argument = MENTION.search(before), ARGUMENT.fullmatch(before)
    if mention is not None:
        found = conversation.file_index.search(mention[1])
        # readline replaces the word with what all of them begin with, which must not be less.
        chosen = [path for path in found if path.startswith(mention[1])] or found[:1]
        quote = '"' if any(" " in path for path in chosen) else ""
        yield from (f"@{quote}{path}{quote}" for path in chosen)
    elif argument is not None:
        for command in slash_commands.listed_commands(Surface.TERMINAL):
            if argument[1] in (command.name, *command.aliases):
                yield from (choice for choice in command.choices if choice.startswith(argument[2]))
    elif before.startswith("/") and " " not in before:
        folder = slash_commands.project_folder(conversation)
        for command in slash_commands.listed_commands(Surface.TERMINAL, folder):
            if command.name.startswith(before[1:]):
                yield f"/{command.name}"


def copy(text: str) -> None:
    """Give a text to the clipboards of the terminal and of the desktop."""
    sequence = clipboard.terminal_sequence(text)
    with contextlib.suppress(OSError), Path("/dev/tty").open("w", encoding="utf-8") as terminal:
        terminal.write(sequence)
    clipboard.copy_by_program(text)


def prompts_path() -> Path:
    """The private file of the prompt history, created if missing."""
    path = paths.private_folder(paths.hermes_home()) / "prompt_history"
    path.touch(mode=paths.FILE_MODE)
    return paths.private_file(path)
