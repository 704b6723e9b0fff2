"""Answers from the history: each sentence with the message that it rests on.

A page chooses neither the model nor its endpoint: the configured one is asked, as in the chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException
from pydantic import BaseModel, Field, StringConstraints

from hermes_conversation.background_answers import MAX_RUNNING, AskedQuestion, BackgroundAnswers
from hermes_core.command_name import with_command_name
from hermes_dashboard.models.text import MessageId, Text, View, problems
from hermes_dashboard.resources.search import CorrectionView
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext

TOO_MANY: Final = f"{MAX_RUNNING} questions are being answered. Wait for one of them, or stop it."

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class QuestionRequest(BaseModel):
    """A question; without a model, it is answered with quotations only."""

    question: Question
    with_model: bool = True


class SentenceView(View):
    """A sentence of the answer, and the numbers of its quotations, from 1."""

    text: Text
    sources: list[int]


class QuotationView(View):
    """A message that may answer the question."""

    session_id: Text
    title: Text
    message_id: MessageId
    role: Text
    at: float
    text: Text


class AnswerView(View):
    """An answer; without sentences if the quotations do not contain one."""

    sentences: list[SentenceView]
    quotations: list[QuotationView]
    corrections: list[CorrectionView]
    left_out: int = Field(description="Sentences of the model that cite nothing.")
    note: Text = Field(description="Why no model was asked.")
    failure: Text = Field(description="Why the model did not answer.")
    model: Text = Field(description="The model that answered; empty without one.")


class AnswerState(View):
    """A question, and its answer once it is there."""

    number: int
    question: Text
    is_running: bool
    step: Text
    answer: AnswerView | None
    error: Text


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of questions."""
    routes = ResourceRouter("/api/answers", tag="sessions")
    answers = BackgroundAnswers(context.db)

    def find(number: int) -> AskedQuestion:
        asked = answers.find(number)
        if asked is None:
            raise HTTPException(404, "This question was asked too long ago. Ask it again.")
        return asked

    @routes.post("", status_code=202, responses=problems(400, 409))
    def ask(request: QuestionRequest) -> AnswerState:
        """Search the history for a question, and let the configured model answer it.

        The model sees only what the search finds. Nothing is stored.
        """
        asked = answers.start(request.question, with_model=request.with_model)
        if asked is None:
            raise HTTPException(409, TOO_MANY)
        return _state(asked)

    @routes.get("/{number}", responses=problems(404))
    def show_answer(number: MessageId) -> AnswerState:
        """A question that was asked, and its answer once it is there."""
        return _state(find(number))

    @routes.remove("/{number}", 404)
    def stop(number: MessageId) -> None:
        """Stop the model; the quotations are still the answer."""
        find(number).cancel.request()

    return routes


def _state(asked: AskedQuestion) -> AnswerState:
    state = AnswerState.model_validate(asked)
    if state.answer is not None:
        state.answer.note = with_command_name(state.answer.note)
        state.answer.failure = with_command_name(state.answer.failure)
    return state
