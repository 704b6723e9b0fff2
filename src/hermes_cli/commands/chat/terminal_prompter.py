"""Questions on a plain terminal: approvals, clarifications and secrets."""

from __future__ import annotations

import contextlib
import select
import sys
import termios
from typing import TYPE_CHECKING, Final

from hermes_agent.permissions.grants import check_rule
from hermes_agent.tools.prompter import DENIED, UNAVAILABLE, ApprovalAnswer, describe_rules
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.tools.prompter import ApprovalRequest
    from hermes_cli.output import CommandOutput

DECISIONS: Final = {
    **dict.fromkeys(("o", "once", "y", "yes"), "once"),
    **dict.fromkeys(("s", "session"), "session"),
    **dict.fromkeys(("a", "always"), "always"),
    **dict.fromkeys(("d", "deny", "n", "no"), "deny"),
}
INVALID_DECISION: Final = (
    "Please answer once, session, always or deny. `d REASON` tells the agent why; `s RULE` and "
    "`a RULE` allow another rule."
)
INVALID_WITHOUT_ALWAYS: Final = (
    "Please answer once, session or deny; always is not offered here. `d REASON` tells the agent "
    "why; `s RULE` allows another rule."
)
LONG_COMMAND_LINES: Final = 12  # the risky lines of a longer one are repeated below it
POLL_SECONDS: Final = 0.1
DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


class TerminalPrompter:
    """Prompts the user at the terminal; denies everything without one."""

    def __init__(self, out: CommandOutput, *, is_interactive: bool) -> None:
        self._out = out
        self._is_interactive = is_interactive
        self.has_refused = False  # whether an approval was needed and there was no user to ask
        self.is_stopped: Callable[[], bool] = lambda: False  # of the turn that asks
        self.read_line: Callable[[], str] = self._read_line

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask for approval of a command until the answer is valid."""
        if not self._is_interactive:
            self.has_refused = True
            return ApprovalAnswer(UNAVAILABLE)
        _discard_typed()
        for text, style in approval_card(request):
            self._out.quote(text, style)
        always = ", [a]lways (or a RULE)" if request.may_always else ""
        while True:
            self._out.prompt(f"Allow? [o]nce, for this [s]ession{always}, [d]eny (or d REASON): ")
            line = self.read_line()
            if not line:
                return DENIED
            try:
                answer = parse_decision(line)
            except UsageError as error:
                self._out.note(str(error))
                continue
            if answer is not None and (answer.choice != "always" or request.may_always):
                return answer
            self._out.note(INVALID_DECISION if request.may_always else INVALID_WITHOUT_ALWAYS)

    def secret(self, prompt: str, name: str) -> str:
        """Prompt for a secret, hidden."""
        del name
        if not self._is_interactive:
            return ""
        import getpass  # noqa: PLC0415 - seldom asked for

        try:
            return getpass.getpass(f"{prompt}: ").strip()
        except EOFError:
            return ""

    def clarify(self, question: str, choices: list[str]) -> str:
        """Ask a question of the model."""
        if not self._is_interactive:
            return ""
        _discard_typed()
        self._out.note(question)
        for number, choice in enumerate(choices, 1):
            self._out.note(f"  {number}. {choice}")
        self._out.prompt("> ")
        answer = self.read_line().strip()
        if answer.isdigit() and 0 < int(answer) <= len(choices):
            return choices[int(answer) - 1]
        return answer

    def _read_line(self) -> str:
        """A line with its newline; empty at the end of input, and if the turn is stopped."""
        while not select.select([sys.stdin], [], [], POLL_SECONDS)[0]:
            if self.is_stopped():
                return ""
        return sys.stdin.readline()


def _discard_typed() -> None:
    """Discard what was typed before a question: it does not answer it."""
    with contextlib.suppress(termios.error, OSError):  # not a terminal
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def parse_decision(line: str) -> ApprovalAnswer | None:
    """The answer in a typed line; None for an invalid one."""
    word, _, rest = line.strip().partition(" ")
    choice, rest = DECISIONS.get(word.lower()), rest.strip()
    if choice is None or (choice == "once" and rest):
        return None
    if choice == "deny":
        return ApprovalAnswer(choice, reason=rest)
    return ApprovalAnswer(choice, (check_rule(rest),) if rest else ())


def approval_card(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """The lines of an approval request, each with its style: why, where, what, the rule."""
    yield f"Approval needed: {request.description}", "bold yellow"
    yield f"Folder: {request.folder}", "dim"
    lines = request.command.split("\n")
    for number, line in enumerate(lines):
        is_risky = number in request.risky_lines
        yield f"{'▶' if is_risky else ' '} {line}", "bold red" if is_risky else ""
    for line in request.diff.splitlines():
        yield f"  {line}", DIFF_STYLES.get(line[:1], "")
    if len(lines) > LONG_COMMAND_LINES and request.risky_lines:
        yield f"Risky, of {len(lines)} lines:", "bold"
        for number in request.risky_lines:
            yield f"▶ {number + 1}: {lines[number]}", "bold red"
    yield f"Session and always allow: {describe_rules(request)}", "dim"
