"""Questions to a person in a chat: sent like any message, answered with a command or a line.

A question belongs to a place, to the turn that asks it, and to whoever the turn works for:
nobody else answers it, but an admin who may decide for all.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.tools.base import ApprovalRequest

WAIT_SECONDS: Final = 300.0


class OpenChatQuestion(NamedTuple):
    """A question that waits."""

    kind: str  # `approval` or `clarify`
    requester: str  # who the turn works for
    answered: threading.Event
    answers: list[str]


class ChatQuestions:
    """The open questions of all places: at most one at a time in each."""

    def __init__(
        self, tell: Callable[[str, str], None], wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._tell = tell  # a place, and what it is asked
        self._wait_seconds = wait_seconds
        self._open: dict[str, OpenChatQuestion] = {}
        self._requesters: dict[str, str] = {}
        self._lock = threading.Lock()

    def of(self, session_key: str) -> PlaceQuestions:
        """Those of one place."""
        return PlaceQuestions(self, session_key)

    def work_for(self, session_key: str, requester: str) -> None:
        """A turn begins in a place, for somebody."""
        with self._lock:
            self._requesters[session_key] = requester

    def done(self, session_key: str) -> None:
        """The turn is over."""
        with self._lock:
            self._requesters.pop(session_key, None)

    def places(self) -> list[str]:
        """Where something is being asked."""
        with self._lock:
            return list(self._open)

    def ask(self, session_key: str, kind: str, text: str) -> str:
        """Ask, and wait for the answer; empty when there is none."""
        with self._lock:
            requester = self._requesters.get(session_key, "")
            question = OpenChatQuestion(kind, requester, threading.Event(), [])
            self._open[session_key] = question
        self._tell(session_key, text)
        question.answered.wait(self._wait_seconds)
        with self._lock:
            if self._open.get(session_key) is question:
                del self._open[session_key]
        return question.answers[0] if question.answers else ""

    def waiting(self, session_key: str) -> OpenChatQuestion | None:
        """The question that waits in a place."""
        with self._lock:
            return self._open.get(session_key)

    def answer(self, session_key: str, text: str, question: OpenChatQuestion | None = None) -> bool:
        """Answer; whether anything was asked, and it was *question* if one is named."""
        with self._lock:
            found = self._open.get(session_key)
            if found is None or (question is not None and found is not question):
                return False
            del self._open[session_key]
        found.answers.append(text)
        found.answered.set()
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
