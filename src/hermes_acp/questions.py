"""Asks the editor what the agent asks; the first answer of any client counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from acp import RequestError
from hermes_acp import approvals
from hermes_core.command_name import with_command_name
from hermes_core.isolate import attempt_async
from tui_gateway.protocol import ApprovalQuestion, ClarifyQuestion

if TYPE_CHECKING:
    from hermes_acp.editor_session import Editor
    from hermes_acp.shown_calls import ShownCalls
    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.protocol import AgentQuestion, SecretQuestion

NEEDED_IN_TERMINAL: Final = (
    "{} is required. Secrets are not typed into an editor's conversation: run `hermes setup` in a "
    "terminal, then try again."
)
CANNOT_ASK: Final = "The editor could not ask for approval."


class AsksFor(Protocol):
    """The conversation whose questions are asked."""

    id: str

    async def call(self, method: str, **params: JsonValue) -> JsonObject:
        """Call a method of the conversation."""

    async def show_text(self, text: str) -> None:
        """Show a text of Hermes."""


class EditorQuestions:
    """The questions of one conversation that the editor shows."""

    def __init__(self, editor: Editor, session: AsksFor) -> None:
        self._editor = editor
        self._session = session
        self._tasks: dict[str, asyncio.Task[object]] = {}

    def ask(self, question: AgentQuestion, calls: ShownCalls) -> None:
        """Ask, while other events are shown."""
        work = self._answer(question, calls)
        task = asyncio.create_task(attempt_async(f"ask {question.kind}", work))
        self._tasks[question.request_id] = task
        task.add_done_callback(lambda _task: self._tasks.pop(question.request_id, None))

    def cancel(self, request_id: str) -> None:
        """A question was answered elsewhere, or is no longer open."""
        task = self._tasks.pop(request_id, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def cancel_all(self) -> None:
        """Stop waiting for answers."""
        for request_id in list(self._tasks):
            self.cancel(request_id)

    async def _answer(self, question: AgentQuestion, calls: ShownCalls) -> None:
        if isinstance(question, ApprovalQuestion):
            await self._approve(question, calls)
        elif isinstance(question, ClarifyQuestion):
            answer = await self._clarify(question)
            await self._respond("clarify.respond", question.request_id, answer=answer)
        else:
            await self._refuse_secret(question)

    async def _approve(self, question: ApprovalQuestion, calls: ShownCalls) -> None:
        shown = calls.find(question.tool_id)
        call = approvals.approval_call(question, shown)
        try:
            response = await self._editor.client.request_permission(
                self._session.id, call, approvals.approval_options(question)
            )
        except RequestError:
            answer: dict[str, JsonValue] = {"choice": approvals.DENY, "reason": CANNOT_ASK}
        else:
            answer = {"choice": approvals.choice_of(response)}
        await self._respond("approval.respond", question.request_id, **answer)

    async def _clarify(self, question: ClarifyQuestion) -> str:
        """The answer to a question of the model; empty if the editor cannot ask it."""
        client = self._editor.client
        try:
            if question.choices:
                chosen = await client.request_permission(
                    self._session.id,
                    approvals.question_call(question),
                    approvals.question_options(question),
                )
                return approvals.chosen_answer(question, chosen)
            if approvals.supports_forms(self._editor.capabilities):
                form = approvals.question_form(self._session.id)
                response = await client.create_elicitation(question.question, form)
                return approvals.form_answer(response)
        except RequestError:
            return ""
        await self._session.show_text(f"\n\n{question.question}\n\n")
        return ""

    async def _refuse_secret(self, question: SecretQuestion) -> None:
        await self._session.show_text(with_command_name(NEEDED_IN_TERMINAL.format(question.prompt)))
        await self._respond("secret.respond", question.request_id, value="")

    async def _respond(self, method: str, request_id: str, **answer: JsonValue) -> None:
        await self._session.call(method, request_id=request_id, **answer)
