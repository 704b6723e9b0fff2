"""Questions to the person at the other end: asked, waited for, answered or given up."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.base import ApprovalRequest

WAIT_SECONDS: Final = 300.0
CHOICES: Final = ("once", "session", "always", "deny")


class Questions:
    """The open questions of one live session."""

    def __init__(self, emit: Callable[[str, dict[str, Any]], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._open: dict[str, tuple[threading.Event, list[str]]] = {}

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

    def _ask(self, kind: str, payload: dict[str, Any]) -> str:
        request_id = os.urandom(4).hex()
        answered = threading.Event()
        answers: list[str] = []
        with self._lock:
            self._open[request_id] = (answered, answers)
        self._emit(kind, {**payload, "request_id": request_id})
        answered.wait(WAIT_SECONDS)
        with self._lock:
            self._open.pop(request_id, None)
        return answers[0] if answers else ""

    def answer(self, request_id: str, text: str) -> bool:
        """Answer an open question; whether there was one. An empty id means the oldest."""
        with self._lock:
            found = request_id or next(iter(self._open), "")
            question = self._open.pop(found, None)
        if question is None:
            return False
        answered, answers = question
        answers.append(text)
        answered.set()
        return True

    def give_up(self) -> None:
        """Nobody will answer: whoever waits goes on without."""
        with self._lock:
            questions, self._open = list(self._open.values()), {}
        for answered, _ in questions:
            answered.set()
