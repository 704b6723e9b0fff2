"""Questions to the person at the other end: asked, waited for, answered or given up."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.base import ApprovalRequest

# A turn waits for whoever asked for it as long as a conversation stays open with nobody there.
WAIT_SECONDS: Final = 6 * 3600.0
CHOICES: Final = ("once", "session", "always", "deny")


class OpenQuestion(NamedTuple):
    """A question nobody has answered yet."""

    kind: str
    payload: dict[str, Any]
    answered: threading.Event
    answers: list[str]


class Questions:
    """The open questions of one live session."""

    def __init__(self, emit: Callable[[str, dict[str, Any]], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuestion] = {}
        self._is_given_up = False

    def begin(self) -> None:
        """A turn begins: somebody may be asked again."""
        with self._lock:
            self._is_given_up = False

    def approve(self, request: ApprovalRequest) -> str:
        """Whether a command may run; no answer means no."""
        payload = {
            "command": request.command,
            "description": request.description,
            "allow_permanent": request.may_always,
        }
        answer = self._ask("approval.request", payload)
        return answer if answer in CHOICES else "deny"

    def clarify(self, question: str, choices: list[str]) -> str:
        """The answer to a question of the model; empty when there is none."""
        return self._ask("clarify.request", {"question": question, "choices": choices})

    def secret(self, prompt: str, name: str) -> str:
        """Something that is typed unseen and never shown or stored in the conversation."""
        return self._ask("secret.request", {"prompt": prompt, "env_var": name})

    def _ask(self, kind: str, payload: dict[str, Any]) -> str:
        request_id = os.urandom(4).hex()
        question = OpenQuestion(kind, {**payload, "request_id": request_id}, threading.Event(), [])
        with self._lock:
            if self._is_given_up:
                return ""
            self._open[request_id] = question
        self._emit(kind, question.payload)
        question.answered.wait(WAIT_SECONDS)
        with self._lock:
            self._open.pop(request_id, None)
        return question.answers[0] if question.answers else ""

    def open_ones(self) -> list[dict[str, Any]]:
        """Questions that wait, for whoever looks at the conversation anew."""
        with self._lock:
            return [{"type": one.kind, "payload": one.payload} for one in self._open.values()]

    def answer(self, request_id: str, text: str) -> bool:
        """Answer an open question; whether there was one. An empty id means the oldest."""
        with self._lock:
            found = request_id or next(iter(self._open), "")
            question = self._open.pop(found, None)
        if question is None:
            return False
        question.answers.append(text)
        question.answered.set()
        self._emit("question.closed", {"request_id": found})
        return True

    def give_up(self) -> None:
        """Nobody will answer: whoever waits goes on without."""
        with self._lock:
            questions, self._open = self._open, {}
            self._is_given_up = True
        for request_id, question in questions.items():
            question.answered.set()
            self._emit("question.closed", {"request_id": request_id})
