"""Questions to the user: approvals, clarifications and secrets."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.tools.prompter import parse_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest

# As long as a waiting conversation stays open without a client.
WAIT_SECONDS: Final = 6 * 3600.0
CHOICES: Final = ("once", "session", "always", "deny")


class OpenQuestion(NamedTuple):
    """A question without an answer yet."""

    kind: str
    payload: dict[str, Any]
    answered: threading.Event
    answers: list[str]


class Questions:
    """The open questions of one live session."""

    def __init__(self, emit: Callable[[str, dict[str, Any]], None]) -> None:
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
        payload = {
            "command": request.command,
            "description": request.description,
            "allow_permanent": request.may_always,
            "folder": request.folder,
            "rules": list(request.rules),
            "risky_lines": list(request.risky_lines),
            "diff": request.diff,
        }
        return parse_answer(self._ask("approval.request", payload))

    def clarify(self, question: str, choices: list[str]) -> str:
        """The answer to a question of the model; empty when there is none."""
        return self._ask("clarify.request", {"question": question, "choices": choices})

    def secret(self, prompt: str, name: str) -> str:
        """Ask for a secret, which is never shown or stored in the conversation."""
        return self._ask("secret.request", {"prompt": prompt, "env_var": name})

    def _ask(self, kind: str, payload: dict[str, Any]) -> str:
        request_id = os.urandom(4).hex()
        question = OpenQuestion(kind, {**payload, "request_id": request_id}, threading.Event(), [])
        with self._lock:
            if self._is_cancelled:
                return ""
            self._pending[request_id] = question
        self._emit(kind, question.payload)
        question.answered.wait(WAIT_SECONDS)
        with self._lock:
            self._pending.pop(request_id, None)
        return question.answers[0] if question.answers else ""

    def pending(self) -> list[dict[str, Any]]:
        """The pending questions, for clients that attach later."""
        with self._lock:
            return [
                {"type": question.kind, "payload": question.payload}
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
        self._emit("question.closed", {"request_id": pending_id})
        return True

    def cancel_all(self) -> None:
        """Release all pending questions without an answer."""
        with self._lock:
            questions, self._pending = self._pending, {}
            self._is_cancelled = True
        for request_id, question in questions.items():
            question.answered.set()
            self._emit("question.closed", {"request_id": request_id})
