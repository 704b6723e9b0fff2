"""Questions to a person in a chat: sent like any message, answered with a command or a line."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.base import ApprovalRequest

WAIT_SECONDS: Final = 300.0


class Open(NamedTuple):
    """A question that waits."""

    kind: str  # `approval` or `clarify`
    answered: threading.Event
    answers: list[str]


class ChatQuestions:
    """The open questions of all places: at most one at a time in each."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell  # a place, and what it is asked
        self._open: dict[str, Open] = {}
        self._lock = threading.Lock()

    def of(self, session_key: str) -> PlaceQuestions:
        """Those of one place."""
        return PlaceQuestions(self, session_key)

    def ask(self, session_key: str, kind: str, text: str) -> str:
        """Ask, and wait for the answer; empty when there is none."""
        question = Open(kind, threading.Event(), [])
        with self._lock:
            self._open[session_key] = question
        self._tell(session_key, text)
        question.answered.wait(WAIT_SECONDS)
        with self._lock:
            if self._open.get(session_key) is question:
                del self._open[session_key]
        return question.answers[0] if question.answers else ""

    def waits_for(self, session_key: str) -> str:
        """The kind of the question that waits in a place; empty when none does."""
        with self._lock:
            question = self._open.get(session_key)
        return question.kind if question else ""

    def answer(self, session_key: str, text: str) -> bool:
        """Answer; whether anything was asked."""
        with self._lock:
            question = self._open.pop(session_key, None)
        if question is None:
            return False
        question.answers.append(text)
        question.answered.set()
        return True

    def give_up(self, session_key: str) -> None:
        """Nobody will answer."""
        self.answer(session_key, "")


class PlaceQuestions:
    """What an agent asks in one place."""

    def __init__(self, questions: ChatQuestions, session_key: str) -> None:
        self._questions = questions
        self._session_key = session_key

    def approve(self, request: ApprovalRequest) -> str:
        """Whether a command may run; no answer means no."""
        text = (
            f"{request.description}\n\n```\n{request.command}\n```\n\n"
            "May I? /approve, /approve session, /approve always, or /deny"
        )
        answer = self._questions.ask(self._session_key, "approval", text)
        return answer if answer in {"once", "session", "always"} else "deny"

    def clarify(self, question: str, choices: list[str]) -> str:
        """The answer to a question of the model."""
        lines = [f"{number}. {choice}" for number, choice in enumerate(choices, 1)]
        answer = self._questions.ask(self._session_key, "clarify", "\n".join([question, *lines]))
        if answer.isdigit() and 0 < int(answer) <= len(choices):
            return choices[int(answer) - 1]
        return answer
