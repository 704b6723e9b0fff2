"""The screen of a conversation: what happens in it is shown, what is typed reaches it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import App
from textual.binding import Binding
from textual.message import Message

from hermes_agent.local import built_in
from hermes_cli import slash
from hermes_core.errors import HermesError
from hermes_tui.asking import Approval, Clarify, Keys, Question
from hermes_tui.past import entries
from hermes_tui.prompt import Prompt
from hermes_tui.status import Status
from hermes_tui.steering import Waiting
from hermes_tui.transcript import Notice, Said, Transcript
from tui_gateway.dispatcher import Dispatcher

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.driver import Driver
    from textual.screen import Screen

    from hermes_cli.talking import Wish
    from hermes_state import SessionDB

TWICE_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 5.0
DARK, LIGHT = "textual-dark", "textual-light"
BUSY: Final = "A turn is running; wait for it, or stop it with Ctrl+C."
LEAVING: Final = frozenset({"quit", "exit", "q"})


class Happened(Message):
    """An event of the conversation, from whatever thread."""

    def __init__(self, kind: str, payload: dict[str, Any]) -> None:
        super().__init__()
        self.kind = kind
        self.payload = payload


class HermesApp(App[None]):
    """One conversation on a whole screen."""

    TITLE = "Hermes"
    CSS_PATH = "hermes_tui.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+d,ctrl+q", "leave", priority=True),
        Binding("ctrl+t", "switch_theme", priority=True),
        Binding("f1", "keys", priority=True),
        Binding("pageup", "look(-1)", priority=True),
        Binding("pagedown", "look(1)", priority=True),
        Binding("escape", "type"),
    ]

    def __init__(self, db: SessionDB, wish: Wish, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class)
        self.theme = DARK
        self._waiting = Waiting()
        self._is_busy = False
        self._stopped_at = 0.0
        self._server = Dispatcher(db, self._hear)
        self.live = self._server.open(wish)

    def compose(self) -> ComposeResult:
        """Transcript, input, status."""
        yield Transcript()
        yield Prompt()
        yield Status()

    async def on_mount(self) -> None:
        """Show what was said so far."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, number)
        await self._reload()
        await self._greet()
        self._prompt.focus()

    async def _greet(self) -> None:
        """A first line, where nothing has been said yet."""
        if self.live.desk.exists:
            return
        model = self.live.desk.agent.model
        await self._note(f"Hermes, {model}. /help lists commands, F1 the keys, Ctrl+D leaves.")
        if model == built_in.NAME:
            await self._note(built_in.TOY)

    async def _reload(self) -> None:
        await self._transcript.load(list(entries(self.live.messages())))
        self._refresh_status()

    def _end(self, number: int) -> None:
        """A signal asks for the end."""
        self.exit(return_code=128 + number)

    def finish(self) -> None:
        """Stop what runs and end the conversation's row; when the screen is gone."""
        self._server.close_all("tui_close")

    @property
    def _transcript(self) -> Transcript:
        return self._below.query_one(Transcript)

    @property
    def _status(self) -> Status:
        return self._below.query_one(Status)

    @property
    def _prompt(self) -> Prompt:
        return self._below.query_one(Prompt)

    @property
    def _below(self) -> Screen[Any]:
        """The conversation, also while a question stands before it."""
        return self.screen_stack[0]

    def _refresh_status(self) -> None:
        self._status.tell(self.live.info(), self.live.desk.row())

    # What happens

    def _hear(self, line: bytes) -> None:
        """Called in the thread in which it happens."""
        frame = json.loads(line)["params"]
        kind, payload = frame["type"], frame["payload"]
        if kind == "tool.complete":
            payload["handed_over"] = self._waiting.hand_over(self.live.desk.agent.steer)
        if self.is_running:
            self.post_message(Happened(kind, payload))

    async def on_happened(self, event: Happened) -> None:
        """Show it."""
        shows = {
            "message.delta": self._show_text,
            "tool.start": self._show_tool,
            "tool.output": self._show_output,
            "tool.complete": self._show_result,
            "status.update": self._show_remark,
            "message.complete": self._show_end,
            "session.info": self._show_idle,
            "approval.request": self._ask_approval,
            "clarify.request": self._ask_question,
        }
        if event.kind in shows:
            await shows[event.kind](event.payload)

    async def _show_text(self, payload: dict[str, Any]) -> None:
        await self._transcript.stream(payload["text"])

    async def _show_tool(self, payload: dict[str, Any]) -> None:
        await self._transcript.start_tool(payload["tool_id"], payload["context"])

    async def _show_output(self, payload: dict[str, Any]) -> None:
        row = self._transcript.tool(payload["tool_id"])
        if row is not None:
            row.add_output(payload["text"])

    async def _show_result(self, payload: dict[str, Any]) -> None:
        row = self._transcript.tool(payload["tool_id"])
        if row is not None:
            row.finish(payload["result"], payload["duration_s"])
        if payload["handed_over"]:
            self._transcript.read_by_agent()

    async def _show_remark(self, payload: dict[str, Any]) -> None:
        if payload["kind"] == "retrying":
            self._status.remark(payload["text"])
        else:
            await self._note(payload["text"])

    async def _show_end(self, payload: dict[str, Any]) -> None:
        await self._transcript.finish_answer()
        while isinstance(self.screen, Question):
            await self.pop_screen()  # nobody waits for the answer any more
        if payload["status"] == "interrupted":
            await self._note("Stopped. What was shown is kept.")
        elif payload["status"] == "error":
            await self._note(str(payload["error"]), is_error=True)
        await self._say_rest(is_stopped=payload["status"] != "complete")

    async def _say_rest(self, *, is_stopped: bool) -> None:
        """What nobody has read is said now, or, after an end that was no good, put back."""
        rest = self._waiting.take()
        if rest and is_stopped:
            await self._transcript.query(".waiting").remove()
            self._prompt.fill(rest)
        elif rest:
            self._transcript.read_by_agent()
            self._submit(rest)
            return
        self._is_busy = False
        self._status.stop()

    async def _show_idle(self, _payload: dict[str, Any]) -> None:
        self._refresh_status()

    async def _ask_approval(self, payload: dict[str, Any]) -> None:
        self._ask(Approval(payload), payload["request_id"])

    async def _ask_question(self, payload: dict[str, Any]) -> None:
        self._ask(Clarify(payload), payload["request_id"])

    def _ask(self, question: Question, request_id: str) -> None:
        def answered(text: str | None) -> None:
            self.live.questions.answer(request_id, text or "")

        self.bell()
        self.push_screen(question, answered)

    async def _note(self, text: str, *, is_error: bool = False) -> None:
        await self._transcript.add(Notice(text, is_error=is_error))

    # What is typed

    async def on_prompt_sent(self, event: Prompt.Sent) -> None:
        """A command, a question, or something to say to a turn that runs."""
        if event.text.startswith("/"):
            await self._command(event.text)
        elif self._is_busy:
            self._waiting.add(event.text)
            await self._transcript.add(Said(event.text, is_waiting=True))
        else:
            await self._say(event.text)

    async def _say(self, text: str) -> None:
        await self._transcript.add(Said(text))
        await self._transcript.fold()
        self._transcript.anchor()
        self._submit(text)

    def _submit(self, text: str) -> None:
        self._is_busy = True
        self._status.start()

        def submit() -> None:
            self.live.wait(GRACE_SECONDS)  # the last turn has told its end, and is about to go
            self.live.submit(text)

        self.run_worker(submit, thread=True)

    async def _command(self, line: str) -> None:
        if line[1:].strip() in LEAVING:
            self.action_leave()
        elif self._is_busy:
            await self._note(BUSY, is_error=True)
        else:
            self._is_busy = True
            self._status.start()
            self.run_worker(self._carry_out(line))

    async def _carry_out(self, line: str) -> None:
        before = self.live.messages()
        try:
            outcome = await asyncio.to_thread(slash.run, self.live.desk, line)
        except HermesError as error:
            outcome = None
            await self._note(str(error), is_error=True)
        self._is_busy = False
        self._status.stop()
        if outcome is not None:
            await self._follow(outcome, is_other=self.live.messages() != before)

    async def _follow(self, outcome: slash.Outcome, *, is_other: bool) -> None:
        """Show what a command said and changed, and do what it asks for."""
        if is_other:
            await self._reload()
        self._refresh_status()
        if outcome.text:
            await self._note(outcome.text)
        if outcome.fill:
            self._prompt.fill(outcome.fill)
        if outcome.say:
            await self._say(outcome.say)
        if outcome.leave:
            self.action_leave()

    # Keys

    def action_interrupt(self) -> None:
        """Stop the turn; when none runs clear the input; twice in a moment leave."""
        now = time.monotonic()
        is_second, self._stopped_at = now - self._stopped_at < TWICE_SECONDS, now
        prompt = self._prompt
        if is_second and not prompt.text:
            self.action_leave()
        elif self._is_busy:
            self._waiting.hold()
            self.live.interrupt()
        elif prompt.text:
            prompt.fill("")
        else:
            self.notify("Once more leaves; so does Ctrl+D.", timeout=TWICE_SECONDS)

    def action_leave(self) -> None:
        """Leave; the conversation stays."""
        self.exit()

    def action_switch_theme(self) -> None:
        """Between dark and light."""
        self.theme = LIGHT if self.theme == DARK else DARK

    def action_keys(self) -> None:
        """Say what the keys do, or go back from there."""
        if isinstance(self.screen, Keys):
            self.screen.dismiss(None)
        else:
            self.push_screen(Keys())

    def action_look(self, pages: int) -> None:
        """A page up or down in the conversation."""
        transcript = self._transcript
        transcript.scroll_relative(y=pages * transcript.size.height, animate=False)

    def action_type(self) -> None:
        """Back to the input."""
        self._prompt.focus()
