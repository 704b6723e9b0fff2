"""Prints a turn on a plain terminal: the answer on stdout, notes on stderr."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_agent import events
from hermes_agent.events import AnswerProblem
from hermes_cli.commands.chat.terminal_prompter import DIFF_STYLES
from hermes_conversation import agent_factory
from hermes_conversation.tool_results import report_of
from hermes_core import human_format
from hermes_core.human_format import duration
from hermes_core.terminal_text import fit, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation

INTERRUPTED_EXIT_CODE: Final = 130
DIFF_LINES: Final = 12
LINE_COLUMNS: Final = 100
FILE_LINES: Final = ("--- ", "+++ ")  # the two lines of a diff that name the file
EXIT_CODES: Final = {
    events.TurnEnd.COMPLETE: 0,
    events.TurnEnd.TOO_LONG: 7,
    events.TurnEnd.FAILED: 1,
    events.TurnEnd.INTERRUPTED: INTERRUPTED_EXIT_CODE,
}
# 2 is a usage error, 3 a denied approval.
PROBLEM_EXIT_CODES: Final = {
    AnswerProblem.LENGTH: 4,
    AnswerProblem.EMPTY: 5,
    AnswerProblem.FILTERED: 6,
    AnswerProblem.STEP_LIMIT: 7,
    AnswerProblem.REPEATED_CALLS: 8,
}
MIN_COUNTDOWN_SECONDS: Final = 1.0  # a shorter pause needs no countdown


def exit_code(finished: events.TurnFinished) -> int:
    """The exit code of a turn."""
    if finished.problem is not None:
        return PROBLEM_EXIT_CODES[finished.problem]
    return EXIT_CODES[finished.end]


class TurnPrinter:
    """Sends a prompt to the agent and prints the events of the turn."""

    def __init__(
        self, conversation: Conversation, out: CommandOutput, *, as_json: bool = False
    ) -> None:
        self._conversation = conversation
        self._out = out
        self._as_json = as_json
        self._is_mid_line = False
        self._countdown = Countdown(out)
        self.shown_notice = ""  # before the first turn

    def run_turn(self, text: str) -> int:
        """Run one turn; return the exit code."""
        code = 1
        if not self._as_json:
            self._conversation.on_review = self._out.note
        for event in self._conversation.send(text):
            if self._as_json:
                self._out.json_line(event_as_dict(event))
                self._out.flush()
            else:
                self._show(event)
            if isinstance(event, events.TurnFinished):
                code = exit_code(event)
        return code

    def _show(self, event: events.Event) -> None:
        self._countdown.stop()
        if isinstance(event, events.TextDelta):
            self._out.stream(event.text)
            self._is_mid_line = not event.text.endswith("\n")
            return
        line = _line(event)
        if isinstance(event, events.Notice) and line == self.shown_notice:
            return
        if line or isinstance(event, events.TurnFinished | events.ToolFinished):
            self._end_line()
        if line:
            self._out.note(line)
        if isinstance(event, events.Retrying):
            self._countdown.start(event.seconds)
        elif isinstance(event, events.ToolFinished):
            for text, style in result_lines(event):
                self._out.quote(text, style)

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._out.stream("\n")
            self._is_mid_line = False


def result_lines(finished: events.ToolFinished) -> Iterator[tuple[str, str]]:
    """How a tool call ended, its first lines or its diff; each line with its style."""
    report = report_of(finished.result)
    facts = ", ".join(filter(None, (report.status, report.duration(finished.seconds))))
    mark, style = ("✗", "red") if report.is_failed else ("✓", "dim")
    yield f"  {mark} {finished.call.name}: {facts}", style
    if report.diff:
        changed = [line for line in report.diff.splitlines() if not line.startswith(FILE_LINES)]
        for line in changed[:DIFF_LINES]:
            yield f"    {line}", DIFF_STYLES.get(line[:1], "dim")
        shown, count = min(len(changed), DIFF_LINES), len(changed)
    else:
        for line in report.lines[: report.preview_lines]:
            yield f"    {fit(one_line(line), LINE_COLUMNS)}", "dim"
        shown, count = min(len(report.lines), report.preview_lines), len(report.lines)
    if count > shown:
        yield f"    … {human_format.plural(count - shown, 'more line')}", "dim"


def _line(event: events.Event) -> str:
    """The note for an event, or ''."""
    if isinstance(event, events.ToolStarted):
        return f"· {agent_factory.summarize_call(event.call.name, event.call.arguments)}"
    if isinstance(event, events.Retrying):
        pause = "" if event.model else f" in {duration(event.seconds)}."
        return f"· {event.description.removesuffix(':')}{pause}"
    if isinstance(event, events.Notice):
        return event.text
    if isinstance(event, events.Attached):
        return "\n".join(f"+ {item}" for item in event.items)
    if isinstance(event, events.TurnFinished) and (event.error or event.notice):
        return f"hermes: {event.error or event.notice}"
    return ""


def event_as_dict(event: events.Event) -> dict[str, Any]:
    """An event as a dict: its name and its fields."""
    facts = event._asdict()
    for name, value in facts.items():
        if hasattr(value, "_asdict"):
            facts[name] = value._asdict()
    return {"event": type(event).__name__, **facts}


class Countdown:
    """A line that counts down to the next attempt of a request; only on a terminal."""

    def __init__(self, out: CommandOutput) -> None:
        self._out = out
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self, seconds: float) -> None:
        """Start to count down."""
        self.stop()
        if not self._out.is_watched or seconds < MIN_COUNTDOWN_SECONDS:
            return
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(time.monotonic() + seconds, self._stop), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Remove the line."""
        if self._stop is not None and self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._stop = self._thread = None
            self._out.progress("")

    def _run(self, until: float, stop: threading.Event) -> None:
        while not stop.is_set():
            left = until - time.monotonic()
            self._out.progress(
                f"Next attempt in {duration(left)}…" if left > 0 else "Trying again…"
            )
            stop.wait(max(0.0, left) % 1.0 or 1.0)
