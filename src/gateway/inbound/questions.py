"""Questions of the agent in a chat: sent like any message, answered with a command or a text.

A question belongs to a chat and to the user whose message started the turn: only that user or
the owner may answer it.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.platforms.base import Button
from hermes_agent.tools.prompter import describe_rules, parse_answer
from hermes_core.isolate import attempt
from hermes_core.terminal_text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest
    from hermes_state.delivery.open_questions import OpenQuestionRepository

ANSWER_SECONDS: Final = 300.0
POLL_SECONDS: Final = 0.5  # for answers from other processes
MAX_LABEL_CHARS: Final = 40
CLOCK_TOLERANCE_SECONDS: Final = 5.0  # between this machine and the servers of apps
BACKTICKS_PATTERN: Final = re.compile(r"`+")


class OpenChatQuestion(NamedTuple):
    """A question that waits for an answer."""

    kind: str  # `approval` or `clarify`
    requester: str  # the user who started the turn
    answered: threading.Event
    answers: list[str]
    asked_at: float
    question_id: str = ""

    def was_asked_before(self, sent_at: float) -> bool:
        """Whether a message that an app says was sent then can be an answer."""
        return sent_at >= self.asked_at - CLOCK_TOLERANCE_SECONDS


class ChatQuestions:
    """The open questions of all chats, by session key: at most one in each."""

    def __init__(
        self,
        send: Callable[[str, str, list[Button]], None],
        wait_seconds: float = ANSWER_SECONDS,
        stored: OpenQuestionRepository | None = None,
        session_of: Callable[[str], str] = lambda _session_key: "",
    ) -> None:
        self._stored = stored  # so that other processes can answer
        self._session_of = session_of
        self._send = send  # gets a session key, the text and buttons
        self._wait_seconds = wait_seconds
        self._open: dict[str, OpenChatQuestion] = {}
        self._requesters: dict[str, str] = {}
        self._lock = threading.Lock()

    def prompter_for(self, session_key: str) -> ChatPrompter:
        """The prompter of one chat."""
        return ChatPrompter(self, session_key)

    def start_turn(self, session_key: str, requester: str) -> None:
        """Note the user who started a turn."""
        with self._lock:
            self._requesters[session_key] = requester

    def end_turn(self, session_key: str) -> None:
        """Note the end of a turn."""
        with self._lock:
            self._requesters.pop(session_key, None)

    def open_keys(self) -> list[str]:
        """The session keys with an open question."""
        with self._lock:
            return list(self._open)

    def ask(
        self, session_key: str, kind: str, text: str, commands: Mapping[str, str] | None = None
    ) -> str:
        """Ask and wait for the answer; empty if none arrives in time.

        *commands* are the labels of buttons and what they send.
        """
        question_id = secrets.token_hex(4)
        with self._lock:
            requester = self._requesters.get(session_key, "")
            question = OpenChatQuestion(
                kind, requester, threading.Event(), [], time.time(), question_id
            )
            self._open[session_key] = question
        buttons = [
            Button.create(label, question_id, command)
            for label, command in (commands or {}).items()
        ]
        choices = list((commands or {}).values())
        self._store(question, session_key, text, choices)
        self._send(session_key, text, buttons)
        self._wait(question, session_key)
        with self._lock:
            if self._open.get(session_key) is question:
                del self._open[session_key]
        return question.answers[0] if question.answers else ""

    def _store(
        self, question: OpenChatQuestion, session_key: str, text: str, choices: list[str]
    ) -> None:
        stored = self._stored
        if stored is not None:
            session_id, seconds = self._session_of(session_key), self._wait_seconds
            facts = (question.question_id, session_key, session_id, question.kind, text)
            # The chat can be asked all the same.
            attempt("store a question", lambda: stored.add(*facts, choices, seconds))

    def _wait(self, question: OpenChatQuestion, session_key: str) -> None:
        """Wait for an answer from the chat or from another process."""
        stored = self._stored
        if stored is None:
            question.answered.wait(self._wait_seconds)
            return
        question_id, end = question.question_id, time.monotonic() + self._wait_seconds

        def look() -> None:
            answer = stored.answer_of(question_id)
            if answer is not None:
                self.answer(session_key, answer, question)

        while (left := end - time.monotonic()) > 0:
            if question.answered.wait(min(POLL_SECONDS, left)):
                break
            attempt("look for the answer to a question", look)
        attempt("remove a question", lambda: stored.remove(question_id))

    def pending(self, session_key: str) -> OpenChatQuestion | None:
        """The open question of a chat."""
        with self._lock:
            return self._open.get(session_key)

    def answer(self, session_key: str, text: str, question: OpenChatQuestion | None = None) -> bool:
        """Answer the open question, or only *question*; whether it was open."""
        with self._lock:
            pending = self._open.get(session_key)
            if pending is None or (question is not None and pending is not question):
                return False
            del self._open[session_key]
        pending.answers.append(text)
        pending.answered.set()
        return True

    def cancel(self, session_key: str) -> None:
        """Close the open question without an answer."""
        self.answer(session_key, "")


class ChatPrompter:
    """Asks the user of one chat."""

    def __init__(self, questions: ChatQuestions, session_key: str) -> None:
        self._questions = questions
        self._session_key = session_key

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask whether a command may run; no answer means `deny`."""
        text = approval_card(request)
        commands = {"Once": "/approve once", "This session": "/approve session"}
        if request.may_always:
            commands["Always"] = "/approve always"
        commands["No"] = "/deny"
        return parse_answer(self._questions.ask(self._session_key, "approval", text, commands))

    def clarify(self, question: str, choices: list[str]) -> str:
        """Ask a question of the model; the answer."""
        lines = [f"{number}. {choice}" for number, choice in enumerate(choices, 1)]
        text = "\n".join([question, *lines])
        commands = {
            f"{number}. {choice}"[:MAX_LABEL_CHARS]: f"/answer {number}"
            for number, choice in enumerate(choices, 1)
        }
        answer = self._questions.ask(self._session_key, "clarify", text, commands)
        if answer.isdigit() and 0 < int(answer) <= len(choices):
            return choices[int(answer) - 1]
        return answer


def approval_card(request: ApprovalRequest) -> str:
    """The question as a message: why, where, what, and how to answer.

    What the model wrote is in code blocks that it cannot end, without invisible characters.
    """
    lines = clean(request.command).split("\n")
    risky = [lines[number].strip() for number in request.risky_lines if number < len(lines)]
    parts = [
        f"**Approval needed:** {one_line(request.description)}",
        f"Folder: `{one_line(request.folder)}`",
    ]
    if risky and len(lines) > 1:
        parts += ["Risky:", fenced("\n".join(risky)), "Complete:"]
    parts.append(fenced("\n".join(lines)))
    if request.diff:
        parts.append(fenced(clean(request.diff), "diff"))
    choices = ["yes (once)", "/approve session"]
    if request.may_always:
        choices.append("/approve always")
    rule = clean(describe_rules(request))
    scopes = "Session and always allow" if request.may_always else "Session allows"
    parts += [
        f"{scopes}: `{rule}`" if "`" not in rule else f"{scopes}:\n{fenced(rule)}",
        f"Reply {', '.join(choices)}, no, or /deny REASON.",
    ]
    return "\n\n".join(parts)


def fenced(text: str, language: str = "") -> str:
    """A code block with a fence that is longer than any in the text."""
    longest = max(map(len, BACKTICKS_PATTERN.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
