"""Prints a turn on a plain terminal: the answer on stdout, notes on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_agent import events
from hermes_conversation import agent_factory

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation

INTERRUPTED_EXIT_CODE: Final = 130
EXIT_CODES: Final = {
    events.TurnEnd.COMPLETE: 0,
    events.TurnEnd.TOO_LONG: 0,
    events.TurnEnd.FAILED: 1,
    events.TurnEnd.INTERRUPTED: INTERRUPTED_EXIT_CODE,
}


class TurnPrinter:
    """Sends a prompt to the agent and prints the events of the turn."""

    def __init__(
        self, conversation: Conversation, out: CommandOutput, *, as_json: bool = False
    ) -> None:
        self._conversation = conversation
        self._out = out
        self._as_json = as_json
        self._is_mid_line = False
        self.on_steering_read: Callable[[], object] = lambda: None

    def run_turn(self, text: str) -> int:
        """Run one turn; return the exit code."""
        code = 1
        if not self._as_json:
            self._conversation.agent.on_review = self._out.note
        is_first = True
        for event in self._conversation.send(text):
            if isinstance(event, events.MessageStored) and event.role == "user":
                if not is_first:
                    self.on_steering_read()
                is_first = False
            if self._as_json:
                self._out.json_line(event_as_dict(event))
                self._out.flush()
            else:
                self._show(event)
            if isinstance(event, events.TurnFinished):
                code = EXIT_CODES[event.end]
        return code

    def _show(self, event: events.Event) -> None:
        if isinstance(event, events.TextDelta):
            self._out.stream(event.text)
            self._is_mid_line = not event.text.endswith("\n")
            return
        line = _line(event)
        if line or isinstance(event, events.TurnFinished):
            self._end_line()
        if line:
            self._out.note(line)

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._out.stream("\n")
            self._is_mid_line = False


def _line(event: events.Event) -> str:
    """The note for an event, or ''."""
    if isinstance(event, events.ToolStarted):
        return f"· {agent_factory.summarize_call(event.call.name, event.call.arguments)}"
    if isinstance(event, events.ToolFinished):
        return f"  {event.call.name} took {event.seconds:.1f} s"
    if isinstance(event, events.Retrying):
        what = f"Trying {event.model}." if event.model else f"Retrying in {event.seconds:.0f} s."
        return f"· {event.reason} {what}"
    if isinstance(event, events.Notice):
        return event.text
    if isinstance(event, events.TurnFinished) and event.error:
        return f"hermes: {event.error}"
    return ""


def event_as_dict(event: events.Event) -> dict[str, Any]:
    """An event as a dict: its name and its fields."""
    facts = event._asdict()
    for name, value in facts.items():
        if hasattr(value, "_asdict"):
            facts[name] = value._asdict()
    return {"event": type(event).__name__, **facts}
