"""Asks the editor what the agent asks; the first answer of any client counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from acp.helpers import text_block, tool_content
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    ToolCallUpdate,
)

from acp import RequestError
from hermes_acp import tool_calls
from hermes_agent.tools.prompter import EXACT_RULE_CHARACTERS
from hermes_core.command_name import with_command_name
from hermes_core.isolate import attempt_async
from hermes_core.json_values import object_in, text_in
from tui_gateway.protocol import ApprovalQuestion, ClarifyQuestion

if TYPE_CHECKING:
    from acp.schema import ClientCapabilities, CreateElicitationResponse, RequestPermissionResponse

    from hermes_acp.editor_session import Editor
    from hermes_acp.tool_calls import ShownCall, ShownCalls
    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.protocol import AgentQuestion, SecretQuestion

NEEDED_IN_TERMINAL: Final = (
    "{} is required. Secrets are not typed into an editor's conversation: run `hermes setup` in a "
    "terminal, then try again."
)
CANNOT_ASK: Final = "The editor could not ask for approval."
DENY: Final = "deny"
NO_ANSWER: Final = "no-answer"
ANSWER: Final = "answer"  # the field of a form
CHOICE_PREFIX: Final = "choice-"


class QuestionedSession(Protocol):
    """The conversation whose questions are asked."""

    id: str

    async def call(self, method: str, **params: JsonValue) -> JsonObject:
        """Call a method of the conversation."""

    async def show_text(self, text: str) -> None:
        """Show a text of Hermes."""


class EditorQuestions:
    """The questions of one conversation that the editor shows."""

    def __init__(self, editor: Editor, session: QuestionedSession) -> None:
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
        call = approval_call(question, shown)
        try:
            response = await self._editor.client.request_permission(
                self._session.id, call, approval_options(question)
            )
        except RequestError:
            answer: dict[str, JsonValue] = {"choice": DENY, "reason": CANNOT_ASK}
        else:
            answer = {"choice": choice_of(response)}
        await self._respond("approval.respond", question.request_id, **answer)

    async def _clarify(self, question: ClarifyQuestion) -> str:
        """The answer to a question of the model; empty if the editor cannot ask it."""
        client = self._editor.client
        try:
            if question.choices:
                chosen = await client.request_permission(
                    self._session.id,
                    question_call(question),
                    question_options(question),
                )
                return chosen_answer(question, chosen)
            if supports_forms(self._editor.capabilities):
                form = question_form(self._session.id)
                response = await client.create_elicitation(question.question, form)
                return form_answer(response)
        except RequestError:
            return ""
        await self._session.show_text(f"\n\n{question.question}\n\n")
        return ""

    async def _refuse_secret(self, question: SecretQuestion) -> None:
        await self._session.show_text(with_command_name(NEEDED_IN_TERMINAL.format(question.prompt)))
        await self._respond("secret.respond", question.request_id, value="")

    async def _respond(self, method: str, request_id: str, **answer: JsonValue) -> None:
        await self._session.call(method, request_id=request_id, **answer)


def approval_options(question: ApprovalQuestion) -> list[PermissionOption]:
    """The answers to an approval; those that are kept name their rule."""
    rule = _rules_text(question)
    options = [
        PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
        PermissionOption(
            option_id="session", name=f"Allow in this conversation: {rule}", kind="allow_always"
        ),
    ]
    if question.allow_permanent:
        options.append(
            PermissionOption(option_id="always", name=f"Always allow: {rule}", kind="allow_always")
        )
    return [*options, PermissionOption(option_id=DENY, name="Deny", kind="reject_once")]


def _rules_text(question: ApprovalQuestion) -> str:
    rules = ", ".join(question.rules)
    is_short = 0 < len(rules) <= EXACT_RULE_CHARACTERS and "\n" not in rules
    return rules if is_short else "this exact command"


def approval_call(question: ApprovalQuestion, shown: ShownCall | None) -> ToolCallUpdate:
    """What is to be approved: the command or the change, and why it is asked."""
    folder = Path(question.folder or ".")
    reason = tool_content(text_block(_reason(question)))
    if shown is None:
        return ToolCallUpdate(
            tool_call_id=f"approval-{question.request_id}",
            title=question.command,
            kind="execute",
            status="pending",
            content=[reason],
            raw_input={"command": question.command},
        )
    arguments = tool_calls.parse_arguments(shown.call.args_text)
    return ToolCallUpdate(
        tool_call_id=shown.shown_id,
        title=tool_calls.title_of(shown.call),
        kind=tool_calls.kind_of(shown.call.name),
        status="pending",
        content=[reason, *tool_calls.changes(shown.call, folder)],
        locations=tool_calls.locations(arguments, folder),
        raw_input=arguments or shown.call.args_text,
    )


def _reason(question: ApprovalQuestion) -> str:
    lines = [question.description, f"In {question.folder}:" if question.folder else ""]
    if not question.diff:
        lines.append(f"```sh\n{question.command}\n```")
    return "\n\n".join(line for line in lines if line)


def choice_of(response: RequestPermissionResponse) -> str:
    """The chosen answer; no choice denies."""
    outcome = response.outcome
    return outcome.option_id if isinstance(outcome, AllowedOutcome) else DENY


# Questions of the model


def supports_forms(capabilities: ClientCapabilities | None) -> bool:
    """Whether the editor can show a form with a question."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and elicitation.form is not None


def question_form(session_id: str) -> ElicitationFormSessionMode:
    """A form with one field, for a question without choices."""
    field = ElicitationStringPropertySchema(type="string", title="Answer")
    schema = ElicitationSchema(type="object", properties={ANSWER: field}, required=[ANSWER])
    return ElicitationFormSessionMode(session_id=session_id, requested_schema=schema)


def form_answer(response: CreateElicitationResponse) -> str:
    """The answer in a form; empty if there is none."""
    if not isinstance(response, AcceptElicitationResponse) or not response.content:
        return ""
    return text_in(object_in(response.model_dump(mode="json"), "content"), ANSWER)


def question_options(question: ClarifyQuestion) -> list[PermissionOption]:
    """The choices of a question."""
    options = [
        PermissionOption(option_id=f"{CHOICE_PREFIX}{index}", name=choice, kind="allow_once")
        for index, choice in enumerate(question.choices)
    ]
    skip = PermissionOption(option_id=NO_ANSWER, name="No answer", kind="reject_once")
    return [*options, skip]


def question_call(question: ClarifyQuestion) -> ToolCallUpdate:
    """A question as a call to be approved."""
    return ToolCallUpdate(
        tool_call_id=f"question-{question.request_id}",
        title=question.question.partition("\n")[0],
        kind="other",
        status="pending",
        content=[tool_content(text_block(question.question))],
    )


def chosen_answer(question: ClarifyQuestion, response: RequestPermissionResponse) -> str:
    """The choice; empty if there is none."""
    choice = choice_of(response)
    if not choice.startswith(CHOICE_PREFIX):
        return ""
    return question.choices[int(choice.removeprefix(CHOICE_PREFIX))]
