"""Questions to the user: approvals, clarifications and secrets."""

from __future__ import annotations

import dataclasses
import os
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.tools.prompter import parse_answer
from tui_gateway.protocol import (
    ApprovalQuestion,
    ClarifyQuestion,
    QuestionClosed,
    SecretQuestion,
    payload_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest
    from tui_gateway.protocol import AgentQuestion, ClientEvent, OpenedQuestion

# As long as a waiting conversation stays open without a client.
WAIT_SECONDS: Final = 6 * 3600.0
CHOICES: Final = ("once", "session", "always", "deny")


class OpenQuestion(NamedTuple):
    """A question without an answer yet."""

    event: AgentQuestion
    answered: threading.Event
    answers: list[str]


class Questions:
    """The open questions of one live session."""

    def __init__(self, emit: Callable[[ClientEvent], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._pending: dict[str, OpenQuestion] = {}
        self._is_cancelled = False

    def begin(self) -> None:
        """Allow questions again at the start of a turn."""
        with self._lock:
            self._is_cancelled = False

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask whether a command may run; no answer means deny."""
        question = ApprovalQuestion(
            command=request.command,
            description=request.description,
            allow_permanent=request.may_always,
            folder=request.folder,
            rules=list(request.rules),
            risky_lines=list(request.risky_lines),
            diff=request.diff,
            tool_id=request.call_id,
        )
        return parse_answer(self._ask(question))

    def clarify(self, question: str, choices: list[str]) -> str:
        """The answer to a question of the model; empty when there is none."""
        return self._ask(ClarifyQuestion(question, choices))

    def secret(self, prompt: str, name: str) -> str:
        """Ask for a secret, which is never shown or stored in the conversation."""
        return self._ask(SecretQuestion(prompt, name))

    def _ask(self, unnamed: AgentQuestion) -> str:
        request_id = os.urandom(4).hex()
        event = dataclasses.replace(unnamed, request_id=request_id)
        question = OpenQuestion(event, threading.Event(), [])
        with self._lock:
            if self._is_cancelled:
                return ""
            self._pending[request_id] = question
        self._emit(event)
        question.answered.wait(WAIT_SECONDS)
        with self._lock:
            self._pending.pop(request_id, None)
        return question.answers[0] if question.answers else ""

    def pending(self) -> list[OpenedQuestion]:
        """The pending questions, for clients that attach later."""
        with self._lock:
            return [
                {"type": question.event.kind, "payload": payload_of(question.event)}
                for question in self._pending.values()
            ]

    def answer(self, request_id: str, text: str) -> bool:
        """Answer a question; whether it was pending. An empty ID means the oldest."""
        with self._lock:
            pending_id = request_id or next(iter(self._pending), "")
            question = self._pending.pop(pending_id, None)
        if question is None:
            return False
        question.answers.append(text)
        question.answered.set()
        self._emit(QuestionClosed(pending_id))
        return True

    def cancel_all(self) -> None:
        """Release all pending questions without an answer."""
        with self._lock:
            questions, self._pending = self._pending, {}
            self._is_cancelled = True
        for request_id, question in questions.items():
            question.answered.set()
            self._emit(QuestionClosed(request_id))
