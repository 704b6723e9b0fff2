"""Questions of a dashboard to the history: each answered in a thread, some at a time."""

from __future__ import annotations

import functools
import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hermes_agent.turn_control import Cancel
from hermes_conversation import history_answers
from hermes_conversation.history_scope import ConversationHistory
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from hermes_conversation.history_answers import HistoryAnswer
    from hermes_state.store import SessionDB

MAX_RUNNING: Final = 3
MAX_KEPT: Final = 50


@dataclass
class AskedQuestion:
    """A question, and its answer once there is one."""

    number: int
    question: str
    with_model: bool
    step: str = ""  # what is being done
    answer: HistoryAnswer | None = None
    error: str = ""
    is_running: bool = True
    cancel: Cancel = field(default_factory=Cancel)


class BackgroundAnswers:
    """Answers questions with the configured model, or with quotations only."""

    def __init__(self, db: SessionDB) -> None:
        self._history = ConversationHistory(db)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._questions: dict[int, AskedQuestion] = {}

    def start(self, question: str, *, with_model: bool) -> AskedQuestion | None:
        """Start answering a question; None if too many are being answered."""
        with self._lock:
            if sum(each.is_running for each in self._questions.values()) >= MAX_RUNNING:
                return None
            asked = AskedQuestion(next(self._numbers), question, with_model)
            self._questions[asked.number] = asked
            for number in list(self._questions)[:-MAX_KEPT]:
                del self._questions[number]
        run = functools.partial(self._run, asked)
        threading.Thread(target=run, name="hermes-answer", daemon=True).start()
        return asked

    def find(self, number: int) -> AskedQuestion | None:
        """A question that was asked; the latest ones are kept."""
        return self._questions.get(number)

    def _run(self, asked: AskedQuestion) -> None:
        result = attempt("answer a question", lambda: self._answer(asked))
        if isinstance(result, Failure):
            asked.error = str(result.error)
        else:
            asked.answer = result
        asked.is_running = False

    def _answer(self, asked: AskedQuestion) -> HistoryAnswer:
        if not asked.with_model:
            budget = history_answers.MAX_BUDGET_TOKENS
            return history_answers.quote(self._history, asked.question, budget)

        def note(step: str) -> None:
            asked.step = step

        return history_answers.ask(self._history, asked.question, on_step=note, cancel=asked.cancel)
