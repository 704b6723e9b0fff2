"""Questions to the person: the approval of a call, and questions of the model."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

UNAVAILABLE = "unavailable"  # the choice of a prompter without a user


class ApprovalRequest(NamedTuple):
    """A question whether something may be done, with all that is needed to review it."""

    session_id: str
    turn_id: str
    command: str
    description: str  # why it is asked
    pattern_keys: tuple[str, ...]
    may_always: bool = True
    folder: str = ""  # where it would run
    rules: tuple[str, ...] = ()  # what `session` and `always` store
    risky_lines: tuple[int, ...] = ()  # lines of the command, from 0
    diff: str = ""  # of a file change
    call_id: str = ""  # of the tool call that asks


class ApprovalAnswer(NamedTuple):
    """The answer of a person: `once`, `session`, `always` or `deny`."""

    choice: str
    rules: tuple[str, ...] = ()  # instead of the suggested ones
    reason: str = ""  # of a denial, for the model

    def __str__(self) -> str:
        return f"{self.choice} {self.reason or RULE_SEPARATOR.join(self.rules)}".strip()


RULE_SEPARATOR = "\n"
EXACT_RULE_CHARACTERS = 200  # a longer rule is described instead
DENIED = ApprovalAnswer("deny")


def parse_answer(text: str) -> ApprovalAnswer:
    """Read `once`, `session [RULE]`, `always [RULE]` or `deny [REASON]`; all else denies."""
    choice, _, rest = text.strip().partition(" ")
    if choice in {"session", "always"}:
        rules = (rule.strip() for rule in rest.split(RULE_SEPARATOR))
        return ApprovalAnswer(choice, tuple(rule for rule in rules if rule))
    if choice == "once" and not rest:
        return ApprovalAnswer(choice)
    return ApprovalAnswer("deny", reason=rest.strip() if choice == "deny" else "")


def describe_rules(request: ApprovalRequest) -> str:
    """What `session` and `always` would store, in one line."""
    rules = ", ".join(request.rules)
    is_short = len(rules) <= EXACT_RULE_CHARACTERS and "\n" not in rules
    return rules if is_short else "this exact command"


@runtime_checkable
class SecretPrompter(Protocol):
    """Prompts the user for a secret."""

    def secret(self, prompt: str, name: str) -> str:
        """Return what the user typed, hidden; empty when nothing was typed."""


class Prompter(Protocol):
    """Asks the person of a conversation: in a terminal, a chat, a web page."""

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask whether something may be done."""

    def clarify(self, question: str, choices: list[str]) -> str:
        """The answer to a question of the model; empty when there is none."""


class NonInteractivePrompter:
    """A conversation without a person: nothing risky is allowed, no question is answered."""

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Report that there is no user to ask."""
        del request
        return ApprovalAnswer(UNAVAILABLE)

    def clarify(self, question: str, choices: list[str]) -> str:
        """No answer."""
        del question, choices
        return ""
