"""The screen of a conversation: what happens in it is shown, what is typed reaches it."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import App, SuspendNotSupported
from textual.binding import Binding
from textual.message import Message

from hermes_agent.local import built_in
from hermes_core.errors import UsageError
from hermes_tui.commands import TuiCommands
from hermes_tui.dialogs import KeysDialog
from hermes_tui.event_queue import GATHER_SECONDS, GATHERED, EventQueue
from hermes_tui.event_view import EventView
from hermes_tui.external_editor import edited
from hermes_tui.messages import NoticeLine
from hermes_tui.prompt import Hints, Prompt
from hermes_tui.status import StatusBar
from hermes_tui.submission import UNREACHABLE, Submission
from hermes_tui.transcript import Transcript

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.driver import Driver
    from textual.screen import Screen
    from textual.widgets import TextArea

    from hermes_tui.conversation import ConversationClient
    from hermes_tui.input_history import InputHistory

TWICE_SECONDS: Final = 2.0
DARK, LIGHT = "textual-dark", "textual-light"
THEMES: Final = {"dark": DARK, "light": LIGHT}
BELOW: Final = frozenset({"edit", "pick", "rewind", "family", "look"})  # not for a question's keys


class EventsArrived(Message):
    """There may be something to show."""


class HermesApp(App[None]):
    """One conversation on a whole screen."""

    TITLE = "Hermes"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+d,ctrl+q", "leave", priority=True),
        Binding("ctrl+t", "switch_theme", priority=True),
        Binding("ctrl+g", "edit", priority=True),
        Binding("ctrl+r", "pick", priority=True),
        Binding("f1", "keys", priority=True),
        Binding("f3", "rewind", priority=True),
        Binding("f4", "family", priority=True),
        Binding("pageup", "look(-1)", priority=True),
        Binding("pagedown", "look(1)", priority=True),
        Binding("escape", "type"),
    ]

    def __init__(
        self,
        conversation: ConversationClient,
        driver_class: type[Driver] | None = None,
        *,
        theme: str = "dark",
        busy_input: str = "steer",
        recall: InputHistory | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.conversation = conversation
        self.is_hung_up = False  # by a signal: nobody said that it is over
        self._busy_input = busy_input
        self._recall = recall
        self._heard = EventQueue()
        self.saying = Submission(self)
        self._commands = TuiCommands(self)
        self.showing = EventView(self)
        self._is_busy = False
        self._stopped_at = 0.0
        self._finished = ""  # the input when Tab last made it longer
        self.theme = THEMES.get(theme, DARK)

    def compose(self) -> ComposeResult:
        """Transcript, input, status."""
        yield Transcript()
        yield Hints()
        yield Prompt(self._recall)
        yield StatusBar()

    async def on_mount(self) -> None:
        """Show what was said so far, and from now on what happens."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, number)
        self.prompt.names = [one["name"] for one in self._commands.known()]
        await self.show_all()
        if not self.conversation.exists and not self.conversation.is_running:
            model = self.conversation.info["model"]
            await self.note(f"Hermes, {model}. /help lists commands, F1 shows keys, Ctrl+D quits.")
            if model == built_in.MODEL_NAME:
                await self.note(built_in.TOY)
        self.conversation.listen(self._hear)
        self.prompt.focus()

    async def show_all(self) -> None:
        """The conversation as it stands, with a turn that is under way."""
        await self.showing.show_all()

    def _end(self, number: int) -> None:
        """A signal asks for the end."""
        self.is_hung_up = True
        self.exit(return_code=128 + number)

    @property
    def transcript(self) -> Transcript:
        """What was said."""
        return self._below.query_one(Transcript)

    @property
    def status(self) -> StatusBar:
        """The bottom line."""
        return self._below.query_one(StatusBar)

    @property
    def prompt(self) -> Prompt:
        """The input."""
        return self._below.query_one(Prompt)

    @property
    def _below(self) -> Screen[Any]:
        """The conversation, also while a question stands before it."""
        return self.screen_stack[0]

    @property
    def is_busy(self) -> bool:
        """Whether a turn, or a command, is at work."""
        return self._is_busy

    def work_begins(self) -> None:
        """Something runs."""
        self._is_busy = True
        self.status.start()

    def work_ends(self) -> None:
        """Nothing runs any more."""
        self._is_busy = False
        self.status.stop()

    # What happens

    def _hear(self, kind: str, payload: dict[str, Any]) -> None:
        """Called in the thread in which it happens."""
        if self.is_running and self._heard.put(kind, payload):
            self.post_message(EventsArrived())

    async def on_events_arrived(self) -> None:
        """Show one thing; keys that were pressed meanwhile come before the next."""
        found = self._heard.take()
        if found is None or not self.screen_stack:
            return  # nothing, or nowhere any more
        await self.showing.show(*found)
        if found[0] in GATHERED and self._heard.is_empty:
            self.set_timer(GATHER_SECONDS, self._look_again)
        else:
            self._look_again()

    def _look_again(self) -> None:
        self.post_message(EventsArrived())

    async def note(self, text: str, *, is_error: bool = False) -> None:
        """A line beside the conversation."""
        await self.transcript.add(NoticeLine(text, is_error=is_error))

    # What is typed

    async def on_prompt_sent(self, event: Prompt.Sent) -> None:
        """A command, a question, or something to say to a turn that runs."""
        self._below.query_one(Hints).show_words([])
        if self._commands.is_leaving(event.text):
            self.action_leave()
        elif not await self.showing.make_sure():
            self.prompt.put_before(event.text)
        elif event.text.startswith("/"):
            await self._commands.run(event.text)
        elif self._is_busy:
            await self.saying.say_meanwhile(event.text, self._busy_input)
        else:
            await self.saying.say(event.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Show which commands begin like this."""
        if event.text_area.text == self._finished:
            return  # by Tab, and what else it could become is shown
        names = set(self.prompt.matching()) if event.text_area is self.prompt else set()
        found = [one for one in self._commands.known() if one["name"] in names]
        self._below.query_one(Hints).show_commands(found)

    async def on_prompt_tabbed(self, event: Prompt.Tabbed) -> None:
        """Finish a path."""
        wish = {"word": event.word, "cwd": str(self.conversation.info["cwd"])}
        try:
            answer = await asyncio.to_thread(self.conversation.call, "complete.path", **wish)
        except UNREACHABLE as error:
            self.notify(str(error), severity="error", markup=False)
            return
        found = answer["items"]
        self.prompt.finish_word(event.word, found)
        self._finished = self.prompt.text
        self._below.query_one(Hints).show_words(found if len(found) > 1 else [])

    async def on_prompt_dropped(self, event: Prompt.Dropped) -> None:
        """Let a picture go along with what is said next."""
        await self._commands.attach(str(event.path))

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What belongs to the conversation waits while something stands before it."""
        if action in BELOW and len(self.screen_stack) > 1:
            return False
        return super().check_action(action, parameters)

    def action_interrupt(self) -> None:
        """Stop the turn; when none runs clear the input; twice in a moment leave."""
        now = time.monotonic()
        is_second, self._stopped_at = now - self._stopped_at < TWICE_SECONDS, now
        prompt = self.prompt
        if is_second and not prompt.text:
            self.action_leave()
        elif self._is_busy:
            self.saying.stop()
        elif prompt.text:
            prompt.fill("")
        else:
            self.notify("Press Ctrl+C again or Ctrl+D to quit.", timeout=TWICE_SECONDS)

    def action_leave(self) -> None:
        """Leave; the conversation stays."""
        self.exit()

    def action_switch_theme(self) -> None:
        """Between dark and light, also next time."""
        name = "light" if self.theme == DARK else "dark"
        self.theme = THEMES[name]
        self.saying.ask_later("config.set", key="tui.theme", value=name)

    def action_keys(self) -> None:
        """Say what the keys do, or go back from there."""
        if isinstance(self.screen, KeysDialog):
            self.screen.dismiss(None)
        else:
            self.push_screen(KeysDialog())

    def action_look(self, pages: int) -> None:
        """A page up or down in the conversation."""
        transcript = self.transcript
        transcript.scroll_relative(y=pages * transcript.size.height, animate=False)

    def action_type(self) -> None:
        """Back to the input."""
        self.prompt.focus()

    def action_edit(self) -> None:
        """Write in another editor."""
        try:
            self.prompt.fill(edited(self, self.prompt.whole_text))
        except SuspendNotSupported:
            self.notify(
                "This terminal cannot be suspended for an external editor.", severity="error"
            )
        except (UsageError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)

    async def action_pick(self) -> None:
        """Choose another conversation."""
        await self._commands.pick()

    async def action_rewind(self) -> None:
        """Go back to something that was said."""
        await self._commands.rewind()

    async def action_family(self) -> None:
        """See the branches."""
        await self._commands.family()
