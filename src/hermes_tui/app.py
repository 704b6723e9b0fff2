"""The full-screen application of one conversation."""

from __future__ import annotations

import asyncio
import signal
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.app import App, SuspendNotSupported
from textual.binding import Binding
from textual.filter import LineFilter, Monochrome
from textual.message import Message
from textual.screen import ModalScreen, Screen

from hermes_agent.local import built_in
from hermes_conversation.input_lines import memory_note, shell_command
from hermes_core import clipboard
from hermes_core.command_name import with_command_name
from hermes_core.errors import UsageError
from hermes_tui.commands import TuiCommands
from hermes_tui.completer import Completer, CompletionMenu
from hermes_tui.dialogs import KeysDialog, QuestionDialog
from hermes_tui.event_view import MERGE_SECONDS, EventQueue, EventView, is_merged
from hermes_tui.external_editor import edit_text
from hermes_tui.messages import NoticeLine
from hermes_tui.notifications import DEFAULT_SETTINGS, TurnNotifier
from hermes_tui.prompt import Prompt
from hermes_tui.status import StatusBar
from hermes_tui.submission import Submission
from hermes_tui.transcript import Transcript
from hermes_tui.trust_dialog import TrustReview

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.color import Color
    from textual.driver import Driver
    from textual.widgets import TextArea
    from textual.worker import Worker

    from hermes_tui.conversation import ConversationClient
    from hermes_tui.input_history import InputHistory
    from hermes_tui.notifications import NotificationSettings
    from tui_gateway.protocol import ClientEvent


class WithoutColors(LineFilter):
    """Keeps bold, dim, italic, underline and reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without colors."""
        del background
        return [Segment(text, style and _plain(style), None) for text, style, _ in segments]


@lru_cache(1024)
def _plain(style: Style) -> Style:
    return style.without_color + Style.from_meta(style.meta)


def remove_colors(app: App[Any]) -> None:
    """Replace the filter of the toolkit."""
    filters = [item for item in app._filters if not isinstance(item, Monochrome)]  # noqa: SLF001 - no public API
    app._filters[:] = [*filters, WithoutColors()]  # noqa: SLF001 - as above


REPEAT_SECONDS: Final = 2.0
DARK, LIGHT = "textual-dark", "textual-light"
THEMES: Final = {"dark": DARK, "light": LIGHT}
# Actions of the conversation, disabled while a dialog is open.
MAIN_SCREEN_ACTIONS: Final = frozenset(
    {"edit", "pick", "rewind", "family", "scroll_pages", "switch_permissions"}
)


class EventsArrived(Message):
    """The event queue may have events."""


class MainScreen(Screen[None]):
    """The conversation; focusing its first message would scroll away from the end."""

    AUTO_FOCUS = "#prompt"


class HermesApp(App[None]):
    """One conversation in full screen."""

    TITLE = "Hermes"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+d,ctrl+q", "leave", priority=True),
        Binding("ctrl+t", "switch_theme", priority=True),
        Binding("ctrl+g", "edit", priority=True),
        Binding("ctrl+r", "pick", priority=True),
        Binding("shift+tab", "switch_permissions", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
        Binding("f1", "keys", priority=True),
        Binding("f3", "rewind", priority=True),
        Binding("f4", "family", priority=True),
        Binding("pageup", "scroll_pages(-1)", priority=True),
        Binding("pagedown", "scroll_pages(1)", priority=True),
        Binding("escape", "type"),
    ]

    def __init__(
        self,
        conversation: ConversationClient,
        driver_class: type[Driver] | None = None,
        *,
        theme: str = "dark",
        busy_input: str = "steer",
        notification: NotificationSettings = DEFAULT_SETTINGS,
        history: InputHistory | None = None,
        has_vim_keys: bool = False,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.conversation = conversation
        self.is_hung_up = False  # ended by a signal, not by the user
        self._busy_input = busy_input
        self._history = history
        self._has_vim_keys = has_vim_keys
        self._events = EventQueue()
        self.submission = Submission(self)
        self._commands = TuiCommands(self)
        self.event_view = EventView(self)
        self.trust_review = TrustReview(self)
        self._is_busy = False
        self._stopped_at = 0.0
        self._attention = TurnNotifier(self, notification)
        self.theme = THEMES.get(theme, DARK)
        if self.no_color:
            remove_colors(self)

    def get_default_screen(self) -> MainScreen:
        """The screen below all dialogs."""
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        """Transcript, menu of completions, input and status bar."""
        menu = CompletionMenu()
        prompt = Prompt(menu, self._history, has_vim_keys=self._has_vim_keys)
        prompt.completer = Completer(prompt, menu, self.conversation, self._commands.available)
        yield Transcript()
        yield menu
        yield prompt
        yield StatusBar()

    async def on_mount(self) -> None:
        """Show the messages so far and subscribe to events."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, number)
        await self.show_all()
        if not self.conversation.exists and not self.conversation.is_running:
            model = self.conversation.info.model
            await self.note(f"Hermes, {model}. /help lists commands, F1 shows keys, Ctrl+D quits.")
            if model == built_in.MODEL_NAME:
                await self.note(built_in.DEMO_NOTICE)
            if self.conversation.notice:
                await self.note(self.conversation.notice)
        for text in self.conversation.pop_notices():
            await self.note(text)
        self.conversation.listen(self._queue_event)
        self.prompt.focus()
        self.check_trust()

    def check_trust(self) -> None:
        """Ask about files of the project that are new or changed."""
        if not self.is_busy:
            # A function, not its coroutine: a later check may cancel this one before it starts.
            _worker: Worker[None] = self.run_worker(
                self.trust_review.ask_if_changed, group="trust", exclusive=True
            )

    async def show_all(self) -> None:
        """Show the conversation with its running turn."""
        await self.event_view.show_all()

    def _end(self, number: int) -> None:
        """Exit because of a signal."""
        self.is_hung_up = True
        self.exit(return_code=128 + number)

    @property
    def transcript(self) -> Transcript:
        """The transcript widget."""
        return self._main_screen.query_one(Transcript)

    @property
    def status(self) -> StatusBar:
        """The status bar."""
        return self._main_screen.query_one(StatusBar)

    @property
    def prompt(self) -> Prompt:
        """The input widget."""
        return self._main_screen.query_one(Prompt)

    @property
    def _main_screen(self) -> Screen[Any]:
        """The screen of the conversation, below any dialogs."""
        return self.screen_stack[0]

    @property
    def is_busy(self) -> bool:
        """Whether a turn or a command is running."""
        return self._is_busy

    def show_busy(self) -> None:
        """Show that a turn or command is running."""
        if not self._is_busy:
            self._attention.note_start()
        self._is_busy = True
        self.status.start()

    def show_idle(self) -> None:
        """Show that nothing is running."""
        self._is_busy = False
        self.status.stop()

    def on_app_focus(self) -> None:
        """The terminal window has got the focus."""
        self._attention.has_focus = True

    def on_app_blur(self) -> None:
        """The terminal window has lost the focus."""
        self._attention.has_focus = False

    def announce_end(self) -> None:
        """Tell a user who looks elsewhere that a long turn has ended."""
        self._attention.announce("The turn has ended.")

    def announce_question(self) -> None:
        """Tell the user that a question waits."""
        self._attention.announce("A question is waiting.", is_urgent=True)

    # Events

    def _queue_event(self, event: ClientEvent) -> None:
        """Queue an event; called in the thread of the connection."""
        if self.is_running and self._events.put(event):
            self.post_message(EventsArrived())

    async def on_events_arrived(self) -> None:
        """Show one event; pending key presses are handled before the next."""
        event = self._events.take()
        if event is None or not self.screen_stack:
            return  # no event, or the application is closing
        await self.event_view.show(event)
        if is_merged(event) and self._events.is_empty:
            self.set_timer(MERGE_SECONDS, self._request_events)
        else:
            self._request_events()

    def _request_events(self) -> None:
        self.post_message(EventsArrived())

    async def note(self, text: str, *, is_error: bool = False) -> None:
        """Add a notice to the transcript; commands are shown as the user types them."""
        notice = NoticeLine(with_command_name(text), is_error=is_error)
        await self.transcript.add_notice(notice)

    # Input

    async def on_prompt_sent(self, event: Prompt.Sent) -> None:
        """Run a command, send a message, or pass input to the running turn."""
        if self._commands.is_quit(event.text):
            self.action_leave()
        elif not await self.event_view.reconnect_if_lost():
            self.prompt.prepend(event.text)
        elif event.text.startswith("/"):
            await self._commands.run(event.text)
        elif command := shell_command(event.text):
            await self._commands.run_shell(command)
        elif note := memory_note(event.text):
            await self._commands.remember(note)
        elif self._is_busy:
            await self.submission.send_while_busy(event.text, self._busy_input)
        else:
            await self.submission.send(event.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Show what may follow in the input."""
        if event.text_area is self.prompt and self.prompt.completer is not None:
            self.prompt.completer.update()

    def on_prompt_mode_changed(self, event: Prompt.ModeChanged) -> None:
        """Show the mode of vim keys."""
        self.status.set_input_mode(event.mode.value)

    async def on_prompt_dropped(self, event: Prompt.Dropped) -> None:
        """Attach an image to the next message."""
        await self.attach_image(str(event.path))

    async def attach_image(self, path: str) -> None:
        """Attach an image file to the next message."""
        await self._commands.attach(path)

    async def on_prompt_image_pasted(self, event: Prompt.ImagePasted) -> None:
        """Attach a picture of the clipboard to the next message."""
        await self._commands.attach_pasted(event.data)

    def copy(self, text: str) -> None:
        """Give a text to the clipboards of the terminal and of the desktop."""
        driver, sequence = self._driver, clipboard.terminal_sequence(text)
        if driver is not None and sequence:
            driver.write(sequence)
        self.run_worker(lambda: clipboard.copy_by_program(text), thread=True)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions of the conversation while a dialog is open."""
        if action in MAIN_SCREEN_ACTIONS and len(self.screen_stack) > 1:
            return False
        return super().check_action(action, parameters)

    def action_interrupt(self) -> None:
        """Copy what is selected, close a dialog, interrupt, or clear the input; twice quits."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy(selected)
            self.screen.clear_selection()
            self.notify("Copied.", timeout=REPEAT_SECONDS)
            return
        if isinstance(self.screen, ModalScreen) and not isinstance(self.screen, QuestionDialog):
            self.screen.dismiss(None)
            return
        now = time.monotonic()
        is_second, self._stopped_at = now - self._stopped_at < REPEAT_SECONDS, now
        prompt = self.prompt
        if is_second and not prompt.text:
            self.action_leave()
        elif self._is_busy:
            self.submission.stop()
        elif prompt.text:
            prompt.fill("")
        else:
            self.notify("Press Ctrl+C again or Ctrl+D to quit.", timeout=REPEAT_SECONDS)

    def action_leave(self) -> None:
        """Quit; the conversation is kept."""
        self.exit()

    def action_switch_theme(self) -> None:
        """Switch between dark and light, and save the choice."""
        name = "light" if self.theme == DARK else "dark"
        self.theme = THEMES[name]
        self.submission.call_in_background("config.set", key="tui.theme", value=name)

    def action_keys(self) -> None:
        """Show or close the list of keys."""
        if isinstance(self.screen, KeysDialog):
            self.screen.dismiss(None)
        else:
            self.push_screen(KeysDialog(has_vim_keys=self._has_vim_keys))

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll the transcript by pages."""
        transcript = self.transcript
        transcript.scroll_relative(y=pages * transcript.size.height, animate=False)

    def action_type(self) -> None:
        """Focus the input."""
        self.prompt.focus()

    def action_edit(self) -> None:
        """Edit the input in an external editor."""
        try:
            self.prompt.fill(edit_text(self, self.prompt.full_text))
        except SuspendNotSupported:
            self.notify(
                "This terminal cannot be suspended for an external editor.", severity="error"
            )
        except (UsageError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)

    async def action_pick(self) -> None:
        """Choose another conversation."""
        await self._commands.pick()

    def action_switch_permissions(self) -> None:
        """Switch between the modes workspace and plan; full is chosen by /permissions only."""
        mode = "plan" if self.conversation.info.mode == "workspace" else "workspace"
        self.submission.call_in_background("session.permissions", mode=mode)

    async def action_rewind(self) -> None:
        """Rewind to an earlier message."""
        await self._commands.rewind()

    async def action_family(self) -> None:
        """Show the branches."""
        await self._commands.family()
