"""The interactive loop of `hermes chat` on a plain terminal."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hermes_cli import history
from hermes_cli.commands.chat.file_prompts import FilePrompts, print_outcome
from hermes_cli.commands.chat.turn_printer import INTERRUPTED_EXIT_CODE
from hermes_cli.commands.chat.typed_input import BusyInput, KeyboardReader
from hermes_cli.commands.system import trust
from hermes_conversation import agent_factory, slash_commands
from hermes_conversation.input_lines import memory_note, shell_command
from hermes_conversation.pending_input import join_inputs, returned_input
from hermes_conversation.slash_commands import Surface
from hermes_core import clipboard, paths
from hermes_core.config.file import ConfigFile
from hermes_core.errors import HermesError, LeaseTakenError
from hermes_core.isolate import Step, run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prompt_toolkit.key_binding import KeyPressEvent

    from hermes_cli.commands.chat.terminal_prompter import TerminalPrompter
    from hermes_cli.commands.chat.turn_printer import TurnPrinter
    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.pending_input import BusyMode

DOUBLE_INTERRUPT_SECONDS: Final = 2.0
INTERRUPT_RETRY_SECONDS: Final = 0.5
MAX_FIRST_SCAN_SESSIONS: Final = 300
PROMPT: Final = "> "
ESCAPE_SECONDS: Final = 0.05  # until Esc is a key of its own, not the beginning of another
VIM_MODES: Final = {"NAVIGATION": "NORMAL"}
NO_OUTCOME: Final = slash_commands.CommandOutcome()


class ChatRepl:
    """Reads prompts and prints answers until the user exits."""

    def __init__(
        self,
        conversation: Conversation,
        printer: TurnPrinter,
        prompter: TerminalPrompter,
        shutdown: ChatShutdown,
        out: CommandOutput,
    ) -> None:
        self._conversation = conversation
        self._printer = printer
        self._shutdown = shutdown
        self._out = out
        self._file_prompts = FilePrompts(conversation, prompter, out)
        mode = cast("BusyMode", ConfigFile.of_home().settings().get_str("agent.busy_input"))
        self._busy_input = BusyInput(conversation, out, mode)
        self._keyboard = KeyboardReader(self._busy_input.take, shutdown.exit_after_turn)
        self._busy_input.answer = lambda text: prompter.is_deciding and self._keyboard.answer(text)
        self._busy_input.give_up = self._keyboard.give_up
        self._busy_input.leave = shutdown.exit_after_turn
        printer.on_steering_read = self._busy_input.pending.mark_read
        shutdown.on_stop = self._keyboard.give_up
        prompter.read_line = self._keyboard.ask

    def _show_found_model(self) -> None:
        """Say that a model is used because its key was found."""
        settings = ConfigFile.of_home().settings()
        notice = agent_factory.environment_notice(settings, self._conversation.options)
        if notice:
            self._out.note(notice)
            self._printer.shown_notice = notice

    def run(self) -> int:
        """Run the loop; return the exit code."""
        lines = LineEditor(self._conversation)
        self._out.note(
            f"Hermes, {self._conversation.agent.model}, mode {self._conversation.mode}. "
            "Type /help for commands, Ctrl+D to exit."
        )
        if not self._conversation.exists:
            self._show_found_model()
        next_input, typed = "", self._restore()
        while not self._shutdown.is_exiting:
            line = next_input or _read_line(lines, self._shutdown, typed)
            next_input, typed = "", ""
            if line is None:
                break
            if line.startswith("/"):
                outcome = self._command(line.strip())
                if outcome.leave:
                    break
                next_input, typed = outcome.say, outcome.fill
            elif self._is_own_line(line):
                continue
            elif line.strip():
                next_input, typed = self._run_turn(line)
        return self._shutdown.code

    def _restore(self) -> str:
        """Attach the pictures of input that a crashed process did not send; return its text."""
        restored = self._busy_input.pending.restore()
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

    def _run_turn(self, line: str) -> tuple[str, str]:
        """Run a turn; return the next input, and the input returned to the line editor."""
        try:
            with self._shutdown.turn(), self._keyboard:
                code = self._printer.run_turn(line)
        except LeaseTakenError as error:
            self._out.error(f"{error}. Run `hermes -c` to watch it.")
            returned = self._busy_input.pending.after_turn(is_complete=False).returned
            return "", join_inputs((line, *(item.text for item in returned)))
        after = self._busy_input.pending.after_turn(is_complete=code != INTERRUPTED_EXIT_CODE)
        return after.next_input.text, returned_input(after.returned).text

    def _command(self, line: str) -> slash_commands.CommandOutcome:
        if line == "/trust" and self._out.is_watched:
            return self._trust()
        try:
            line = self._ask_about_files(line)
            outcome = NO_OUTCOME
            if line:
                outcome = slash_commands.run(self._conversation, line, Surface.TERMINAL)
        except HermesError as error:
            self._out.error(str(error))
            return NO_OUTCOME
        if outcome.copy:
            copy(outcome.copy)
        if outcome.text:
            print_outcome(line, outcome.text, self._out)
        if outcome.is_handed_off:
            session_id = self._conversation.continue_with_new()
            self._out.text(f"Started a new conversation: {session_id}")
        if outcome.stop or outcome.answer:
            self._out.note("No turn is running.")
        return outcome._replace(say=outcome.say or outcome.steer or outcome.queue)

    def _ask_about_files(self, line: str) -> str:
        """The command to run after a question about files; empty if the user cancelled."""
        if not self._file_prompts.asks(line):
            return line
        with self._shutdown.turn(), self._keyboard:  # answers are read as during a turn
            return self._file_prompts.ask(line)

    def _trust(self) -> slash_commands.CommandOutcome:
        """Ask about the files of the project; the conversation uses them from now on."""
        try:
            code = trust.review(self._conversation.agent.cwd, self._out)
        except HermesError as error:
            self._out.error(str(error))
        else:
            if code == 0:
                self._conversation.reload()
        return NO_OUTCOME


class LineEditor:
    """A line editor with history, and completion of commands and mentioned files."""

    def __init__(self, conversation: Conversation) -> None:
        from prompt_toolkit import PromptSession  # noqa: PLC0415 - only for the interactive chat
        from prompt_toolkit.history import FileHistory  # noqa: PLC0415 - as above
        from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415 - as above

        from hermes_cli.commands.chat.line_completion import LineCompleter  # noqa: PLC0415 - as above

        self._suggestion = ""
        bindings = KeyBindings()
        bindings.add("/")(self._insert_slash)
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            completer=LineCompleter(conversation),
            history=FileHistory(str(prompts_path())),
            complete_while_typing=False,
            complete_in_thread=True,
            key_bindings=bindings,
        )
        if ConfigFile.of_home().settings().get_bool("display.vim_keys"):
            self._use_vim_keys()

    def _use_vim_keys(self) -> None:
        """Edit with vim keys, and show the mode at the right edge."""
        from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig  # noqa: PLC0415 - as above
        from prompt_toolkit.enums import EditingMode  # noqa: PLC0415 - as above

        session, application = self._session, self._session.app
        session.editing_mode = EditingMode.VI
        session.cursor = ModalCursorShapeConfig()
        application.ttimeoutlen = ESCAPE_SECONDS

        def mode() -> str:
            name = application.vi_state.input_mode.value.removeprefix("vi-").upper()
            return "" if application.is_done else VIM_MODES.get(name, name)

        session.rprompt = mode

    def read(self, suggestion: str) -> str:
        """Read a line, prefilled with a suggestion; a slash replaces an unchanged one."""
        self._suggestion = suggestion
        return self._session.prompt(default=suggestion)

    def _insert_slash(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if self._suggestion and buffer.text == self._suggestion:
            buffer.text = ""
        buffer.insert_text("/")


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


def _read_line(lines: LineEditor, shutdown: ChatShutdown, typed: str) -> str | None:
    """Read a line, prefilled with *typed*; None at the end of input."""
    while True:
        try:
            return lines.read(typed)
        except EOFError:
            return None
        except KeyboardInterrupt:
            if shutdown.is_second_interrupt():
                return None
            typed = ""  # Ctrl+C clears the line


def report_new_achievements(out: CommandOutput) -> None:
    """Print new achievements on a terminal, unless the scan would take long."""
    if not out.is_watched:
        return
    from hermes_cli.commands.achievements import display  # noqa: PLC0415 - only on a terminal
    from hermes_cli.commands.achievements.report import open_report  # noqa: PLC0415 - as above
    from hermes_conversation import achievements  # noqa: PLC0415 - only on a terminal

    settings = ConfigFile.of_home().settings()
    if not (achievements.is_enabled() and settings.get_bool("achievements.notify")):
        return
    is_first = achievements.service().current() is None
    if is_first:
        with history.open_for_reading() as db:
            if db.lists.session_count() > MAX_FIRST_SCAN_SESSIONS:
                return  # the first scan would take too long
    with open_report(out) as report:
        if report.news["count"]:
            out.note(display.notice_text({**report.news, "is_first_scan": False}))


class ChatShutdown:
    """Handles signals and ends the conversation on exit.

    Signal handlers only enqueue a request, without a lock; a thread forwards it to the agent.
    The turn then stores its output and ends, and the row is ended on exit.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._requests: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_busy = False
        self._interrupted_at = 0.0
        self.code = 0  # the exit code of a terminating signal
        self.is_exiting = False
        self.on_stop: Callable[[], object] = lambda: None  # called in addition to the interrupt
        self._previous_handlers = dict(self._install())

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Defer shutdown requests until the turn has stored its output."""
        self._interrupted_at = 0.0
        forwarder = threading.Thread(
            target=self._forward_requests, name="hermes-signals", daemon=True
        )
        forwarder.start()
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False
            self._requests.put(None)
            forwarder.join(timeout=5)

    def _forward_requests(self) -> None:
        """Interrupt the turn on request; repeat it for a turn that has only just started."""
        reason: str | None = ""
        while reason is not None:
            with contextlib.suppress(queue.Empty):
                reason = self._requests.get(timeout=INTERRUPT_RETRY_SECONDS if reason else None)
            if reason:
                self._conversation.agent.interrupt(reason)
                self.on_stop()

    def is_second_interrupt(self) -> bool:
        """Whether Ctrl+C was pressed twice in a short time."""
        now = time.monotonic()
        is_second = now - self._interrupted_at < DOUBLE_INTERRUPT_SECONDS
        self._interrupted_at = now
        return is_second

    def exit_after_turn(self) -> None:
        """Exit after the turn."""
        self.is_exiting = True

    def _install(self) -> Iterator[tuple[int, Any]]:
        yield signal.SIGINT, signal.signal(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            yield number, signal.signal(number, self._end)

    def _interrupt(self, _number: int, _frame: object) -> None:
        """Interrupt the turn on the first Ctrl+C; exit on the second."""
        if self.is_second_interrupt():
            self.is_exiting = True
            raise KeyboardInterrupt
        if self._is_busy:
            self._requests.put("interrupted")

    def _end(self, number: int, _frame: object) -> None:
        self.is_exiting = True
        self.code = 128 + number
        if not self._is_busy:
            raise SystemExit(self.code)
        self._requests.put(signal.Signals(number).name)

    def finish(self, out: CommandOutput, *, is_interactive: bool) -> None:
        """Stop the agent, end the conversation's row, notify plugins."""
        existed = self._conversation.exists
        steps = [
            Step("leave the conversation", lambda: self._conversation.leave("cli_close")),
            Step("notify plugins", lambda: history.deliver_events(self._conversation.db)),
        ]
        if is_interactive and existed and not self.is_exiting:
            steps.append(Step("report new achievements", lambda: report_new_achievements(out)))
        run_all(steps)
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        if is_interactive and existed:
            out.note(f"To continue: `hermes chat -r {self._conversation.session_id}`")
