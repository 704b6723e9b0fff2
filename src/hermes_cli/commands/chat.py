"""`hermes chat`: talk to the agent, one question or a whole conversation."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_agent import events
from hermes_cli import talking
from hermes_cli.commands import history
from hermes_cli.keeping import keep_facts
from hermes_cli.parser import add_json
from hermes_cli.talking import Talk, Wish
from hermes_core.errors import UsageError
from hermes_state import SessionDB

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_agent.tools.base import ApprovalRequest
    from hermes_cli.output import Output

EXAMPLES = """\
examples:
  hermes chat                            talk
  hermes chat -q "what is in this folder?"
  git diff | hermes chat -q "review this" -
  hermes chat -c                         go on with the latest conversation of this folder
  hermes chat -r 20260105_1200 -q "and?"  go on with that one
  hermes chat -q "hello" --json          events for programs
"""
INTERRUPTED = 130
ENDS = {
    events.TurnEnd.COMPLETE: 0,
    events.TurnEnd.TOO_LONG: 0,
    events.TurnEnd.FAILED: 1,
    events.TurnEnd.INTERRUPTED: INTERRUPTED,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes chat`."""
    parser.add_argument("-q", "--question", metavar="TEXT", help="ask this, print the answer, end")
    parser.add_argument("context", nargs="?", choices=["-"], help="read more from standard input")
    parser.add_argument(
        "-c", "--continue", dest="again", action="store_true",
        help="go on with the latest conversation of this folder",
    )  # fmt: skip
    parser.add_argument("-r", "--resume", metavar="ID", help="go on with this conversation")
    parser.add_argument("--model", default="", metavar="NAME", help="ask this model")
    parser.add_argument(
        "--source", default="cli", metavar="NAME", help="the place it is noted under"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(wishes: argparse.Namespace, out: Output) -> int:
    """Talk."""
    question = _question(wishes)
    with SessionDB(keeper=keep_facts) as db:
        wish = Wish(_session(db, wishes), wishes.model, wishes.source)
        person = _Person(out, is_there=sys.stdin.isatty() and not wishes.json)
        talk = talking.begin(db, person, wish)
        ending = _Ending(talk)
        try:
            if question is None:
                raise UsageError("give a question with -q; talking at length comes next")
            return Speaker(talk, out, as_json=wishes.json).say(question)
        finally:
            ending.finish(db)


def _question(wishes: argparse.Namespace) -> str | None:
    piped = ""
    if wishes.context == "-" or (wishes.question and not sys.stdin.isatty()):
        piped = sys.stdin.read().strip()
    if wishes.question and piped:
        return f"{wishes.question}\n\n{piped}"
    return wishes.question or piped or None


def _session(db: SessionDB, wishes: argparse.Namespace) -> str | None:
    if wishes.resume:
        return str(db.resolve(wishes.resume))
    if not wishes.again:
        return None
    here = str(Path.cwd().resolve())
    rows = db.list_sessions_rich(limit=200, order_by_last_active=True)
    found = next((row["id"] for row in rows if row.get("cwd") == here), None)
    if found is None:
        raise UsageError(f"there is no conversation of {here} yet; {history.no_history()}")
    return str(db.resolve_resume_session_id(found))


class Speaker:
    """Says something to the agent and shows what comes back."""

    def __init__(self, talk: Talk, out: Output, *, as_json: bool = False) -> None:
        self._talk = talk
        self._out = out
        self._as_json = as_json
        self._is_mid_line = False

    def say(self, text: str) -> int:
        """One turn; the exit code that stands for its end."""
        code = 1
        for event in self._talk.agent.turn(text):
            if self._as_json:
                self._out.json_line(as_json(event))
                self._out.flush()
            else:
                self._show(event)
            if isinstance(event, events.TurnFinished):
                code = ENDS[event.end]
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
    """What is remarked beside the answer."""
    if isinstance(event, events.ToolStarted):
        return f"· {talking.summary(event.call.name, event.call.arguments)}"
    if isinstance(event, events.ToolFinished):
        return f"  {event.call.name} took {event.seconds:.1f} s"
    if isinstance(event, events.Retrying):
        what = f"asking {event.model}" if event.model else f"again in {event.seconds:.0f} s"
        return f"· {event.reason} {what}"
    if isinstance(event, events.Notice):
        return event.text
    if isinstance(event, events.TurnFinished) and event.error:
        return f"hermes: {event.error}"
    return ""


def as_json(event: events.Event) -> dict[str, Any]:
    """An event for programs: its name and its facts."""
    facts = event._asdict()
    for name, value in facts.items():
        if hasattr(value, "_asdict"):
            facts[name] = value._asdict()
    return {"event": type(event).__name__, **facts}


class _Person:
    """Whoever sits at the terminal; nobody when there is none."""

    def __init__(self, out: Output, *, is_there: bool) -> None:
        self._out = out
        self._is_there = is_there

    def approve(self, request: ApprovalRequest) -> str:
        """Ask whether a command may run."""
        if not self._is_there:
            return "deny"
        self._out.note(f"{request.description}\n  {request.command}")
        answer = self._ask("May it? [o]nce, for this [s]ession, [a]lways, [d]eny: ")
        return {"o": "once", "s": "session", "a": "always"}.get(answer[:1].lower(), "deny")

    def clarify(self, question: str, choices: list[str]) -> str:
        """Pass a question of the model on."""
        if not self._is_there:
            return ""
        self._out.note(question)
        for number, choice in enumerate(choices, 1):
            self._out.note(f"  {number}. {choice}")
        answer = self._ask("> ")
        if answer.isdigit() and 0 < int(answer) <= len(choices):
            return choices[int(answer) - 1]
        return answer

    def _ask(self, prompt: str) -> str:
        self._out.flush()
        try:
            return input(prompt).strip()
        except EOFError:
            return ""


class _Ending:
    """How the process is asked to stop, and what is done before it does."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._reason = "cli_close"
        self._asked = threading.Event()
        self._before = dict(self._install())

    def _install(self) -> Iterator[tuple[int, Any]]:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield number, signal.signal(number, self._stop)

    def _stop(self, number: int, _frame: object) -> None:
        """The first request stops the turn; the second of the keyboard's stops waiting."""
        if number == signal.SIGINT and self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()
        self._talk.agent.interrupt()

    def finish(self, db: SessionDB) -> None:
        """Stop what runs, end the conversation's row, tell plugins."""
        self._talk.close()
        if db.get_session(self._talk.agent.session_id) is not None:
            db.end_session(self._talk.agent.session_id, self._reason)
            history.announce(db)
        for number, handler in self._before.items():
            signal.signal(number, handler)
