"""One turn: from the user's message to the final answer.

The loop is a generator of events. Messages, answers and results are stored before their
events are yielded, and a streamed answer is checkpointed. Streamed text is kept however the
turn ends.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.context.compaction import is_due
from hermes_agent.context.window import (
    estimate_tokens,
    last_place,
    lost_result,
    message_tokens,
    tokens_in,
)
from hermes_agent.conversation_store import NewPrompt
from hermes_agent.costs import UsageMeter
from hermes_agent.events import (
    CUT_CALL_TEXT,
    CallHistory,
    Failed,
    FailureKind,
    MessageStored,
    Notice,
    ReasoningDelta,
    Reply,
    Retrying,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnFinished,
    TurnStarted,
    UsageReport,
    cut_call_notice,
    cut_calls,
    find_problem,
    repetition_notice,
    step_limit_notice,
)
from hermes_agent.hints import HINT_KEY
from hermes_agent.messages import ModelRequest, Usage, result_message
from hermes_agent.providers.failures import interrupted
from hermes_agent.toolbox import TurnContext
from hermes_agent.tools.base import failure, with_news
from hermes_agent.turn_control import join_texts, joint_identity
from hermes_core.isolate import Failure, attempt
from hermes_core.messages import HOOK_FEEDBACK, is_prompt
from hermes_state.delivery import leases
from hermes_state.messages.history import JOURNALED_ROW_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from hermes_agent.context.window import ContextWindow, PreparedMessages
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.events import Event, ProblemNotice
    from hermes_agent.messages import Message, ToolCall, ToolSchema
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.toolbox import Guard, Toolbox
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.turn_control import Cancel, SteeringInput
    from hermes_agent.turn_hooks import RequestFields, TurnHooks
    from hermes_state.delivery.leases import Lease
    from hermes_state.engine.transaction import Tx
    from hermes_state.messages.drafts import Draft

    Change = Callable[[Tx], object]
    # Gets the end of the turn before the answer is stored; returns a change to be stored with it.
    AnswerHook = Callable[[TurnFinished], Change]

MAX_STEPS: Final = 90  # requests to the model
OUT_OF_REQUESTS: Final = (
    "You have used all steps of this turn. Summarize what you found and what is left to do; "
    "do not call tools."
)


MAX_CONTINUATIONS: Final = 5  # of a turn, by hooks
CONTINUATION_LIMIT: Final = (
    f"A hook asked {MAX_CONTINUATIONS + 1} times to continue; the turn ends anyway."
)
LONG_PROMPT: Final = (
    "Your message has about {tokens:,} tokens, but the context window of {model} has {window:,}: "
    "the model may read only a part. Use /undo, save the text as a file, and ask about the file."
)
FEEDBACK_PREFIX: Final = "Feedback from a hook before the end of the turn: "


class TurnDependencies(NamedTuple):
    """The dependencies of a turn."""

    store: ConversationStore
    provider: FallbackProvider
    toolbox: Toolbox
    hooks: TurnHooks
    prompter: Prompter
    guard: Guard
    cwd: Path
    system_message: Callable[[], Message]
    cancel: Cancel
    pop_steering: Callable[[], list[SteeringInput]]  # removes and returns the steering input
    window: ContextWindow
    prepared: PreparedMessages
    # A prompt with the note about what has changed since the messages before it.
    with_changes: Callable[[NewPrompt, list[Message]], NewPrompt]
    on_answer: AnswerHook | None = None
    pop_news: Callable[[], str] = str  # what has ended in the background since the last call
    max_steps: int = MAX_STEPS
    # What earlier conversations know about a call and its result.
    hint: Callable[[ToolCall, str], str] = lambda _call, _result: ""


class Turn:
    """A running turn."""

    def __init__(self, turn_id: str, deps: TurnDependencies, lease: Lease) -> None:
        self._turn_id = turn_id
        self._deps = deps
        self._lease = lease
        self.messages: list[Message] = []
        self._usage = Usage()
        self._is_released = False
        self._plugin_context = ""
        self._calls = CallHistory()
        self.prompt_index = 0  # index of the turn's prompt in the messages
        self._feedback = ""  # of a hook, after an answer that does not end the turn
        self._continuations = 0
        self._is_limit_reached = False  # of continuations

    def renew_lease(self) -> None:
        """Renew the turn's lease, unless it was released with the answer."""
        if not self._is_released:
            self._deps.store.renew_turn(self._lease)

    def release_lease(self) -> None:
        """Release the turn's lease, unless it was released with the answer."""
        if not self._is_released:
            self._deps.store.release_turn(self._lease)

    def run(
        self, prompt: NewPrompt, *, is_first: bool, row_id: int | None = None
    ) -> Iterator[Event]:
        """Run the turn; yields events, the last is TurnFinished.

        *row_id* is that of the prompt if it was stored with the lease.
        """
        deps, content = self._deps, prompt.content
        if row_id is None:
            self.messages = deps.store.history()
            prompt = deps.with_changes(prompt, self.messages)
            row_id = deps.store.add_prompt(prompt, self._lease)
        else:
            self.messages = deps.store.take_messages()
        self._plugin_context = deps.hooks.turn_started(
            content, list(self.messages), is_first=is_first
        )
        self.prompt_index = len(self.messages)
        self.messages.append(prompt.message())
        yield TurnStarted(deps.store.session_id, self._turn_id)
        yield MessageStored("user", row_id)
        finished = yield from self._loop()
        if finished.end is TurnEnd.COMPLETE:
            deps.store.keep_messages(self.messages)
            deps.hooks.turn_completed(content, finished.text, list(self.messages))
        yield finished

    def resume(self) -> Iterator[Event]:
        """Continue an unfinished turn without a new user message."""
        self._deps.store.drop_unfinished()
        self.messages = self._deps.store.history()
        self.prompt_index = max(
            (index for index, message in enumerate(self.messages) if is_prompt(message)),
            default=0,
        )
        yield TurnStarted(self._deps.store.session_id, self._turn_id)
        yield (yield from self._loop())

    def _loop(self) -> Generator[Event, None, TurnFinished]:
        max_steps = self._deps.max_steps
        for number in range(1, max_steps + 1):
            answer = yield from self._request_within_window(self._deps.toolbox.schemas(), number)
            if isinstance(answer, Failed):
                return self._failure(answer)
            if not answer.calls:
                if self._is_limit_reached:
                    yield Notice(CONTINUATION_LIMIT)
                if not self._feedback:
                    return self._finished(answer, number)
                yield self._add_feedback()
                continue
            problem = yield from self._run_calls(answer, f"{self._turn_id}-{number}")
            if self._deps.cancel.is_requested:
                return TurnFinished(TurnEnd.INTERRUPTED, answer.text, self._usage)
            has_steering = yield from self._add_steering()
            if problem is not None and not has_steering:
                return self._stopped(problem, answer.text)
        return self._stopped(step_limit_notice(max_steps), "")

    def _finished(self, answer: Reply, number: int) -> TurnFinished:
        """The end of the turn with its last answer."""
        provider = self._deps.provider.current
        found = find_problem(
            answer.finish_reason,
            answer.text,
            provider.model,
            limit=provider.max_output,
            has_reasoning=bool(answer.reasoning),
        )
        end, is_last = TurnEnd.COMPLETE, number == self._deps.max_steps
        if is_last:
            end, found = TurnEnd.TOO_LONG, step_limit_notice(number)
        finished = TurnFinished(end, answer.text, self._usage, finish_reason=answer.finish_reason)
        return finished if found is None else _with_problem(finished, found)

    def _stopped(self, problem: ProblemNotice, text: str) -> TurnFinished:
        """The end of a turn that is stopped after tool calls."""
        return _with_problem(TurnFinished(TurnEnd.TOO_LONG, text, self._usage), problem)

    def _failure(self, failed: Failed) -> TurnFinished:
        text = str(self.messages[-1].get("content") or "") if self._has_partial_answer() else ""
        if failed.kind is FailureKind.INTERRUPTED:
            return TurnFinished(TurnEnd.INTERRUPTED, text, self._usage)
        return TurnFinished(TurnEnd.FAILED, text, self._usage, str(failed), failed)

    def _has_partial_answer(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("role") == "assistant"

    # Requests

    def request_messages(self) -> list[Message]:
        """The messages as sent to the model, with the system prompt."""
        prepared = self._deps.prepared
        prepared.update(self.messages, self._deps.window.max_characters)
        messages = [self._deps.system_message(), *prepared.messages]
        if self._plugin_context:
            prompt = messages[self.prompt_index + 1]
            messages[self.prompt_index + 1] = _with_context(prompt, self._plugin_context)
        return messages

    def _request(self, tools: list[ToolSchema], number: int) -> ModelRequest:
        messages = self.request_messages()
        if number == self._deps.max_steps:
            messages.append({"role": "user", "content": OUT_OF_REQUESTS})
        has_images = self._deps.prepared.may_have_images
        tokens = self._size()
        may_call = number < self._deps.max_steps
        return ModelRequest(messages, tools, None, has_images, may_call, tokens)

    def _request_within_window(
        self, tools: list[ToolSchema], number: int
    ) -> Generator[Event, None, Reply | Failed]:
        """Send a request; a conversation that is too long is shortened before or after it."""
        request = self._request(tools, number)
        if self._deps.window.is_exceeded_by(self._size()):
            yield from self._free_up_context(request, number)
            request = self._request(tools, number)
            if number == 1:
                yield from self._long_prompt()
        answer = yield from self._send_request(request, number)
        if not self._is_too_long(answer):
            return answer
        request = self._request(tools, number)
        self._deps.window.shrink(request, answer.window if isinstance(answer, Failed) else 0)
        has_room = yield from self._free_up_context(request, number)
        if not has_room:
            return answer
        return (yield from self._send_request(self._request(tools, number), number))

    def _long_prompt(self) -> Iterator[Notice]:
        """A notice about a prompt that is longer than the window, before it is sent."""
        provider = self._deps.provider.current
        tokens = message_tokens(self.messages[self.prompt_index])
        if tokens > provider.window:
            model, window = provider.model, provider.window
            yield Notice(LONG_PROMPT.format(tokens=tokens, model=model, window=window))

    def _size(self) -> int:
        """The approximate number of tokens of the request."""
        deps = self._deps
        parts = message_tokens(deps.system_message()), tokens_in(self._plugin_context)
        return sum(parts) + deps.prepared.tokens + deps.toolbox.schema_tokens

    def _is_too_long(self, answer: Reply | Failed) -> bool:
        """Whether the request was rejected for its length and may be repeated."""
        is_refused = isinstance(answer, Failed) and answer.kind is FailureKind.CONTEXT
        return is_refused and not self._has_partial_answer() and not self._deps.cancel.is_requested

    def _free_up_context(self, request: ModelRequest, number: int) -> Generator[Event, None, bool]:
        """Free up context; whether the next request is shorter than *request*."""
        notice = self._deps.window.free_up()
        prompt = self.messages[self.prompt_index]
        self.messages = self._deps.store.history()
        self.prompt_index = last_place(prompt, self.messages)
        if self.prompt_index < 0:  # the prompt itself was summarized
            self._plugin_context, self.prompt_index = "", 0
        if estimate_tokens(self._request(request.tools, number)) >= estimate_tokens(request):
            return False
        yield Notice(notice)
        return True

    def _send_request(
        self, request: ModelRequest, number: int
    ) -> Generator[Event, None, Reply | Failed]:
        """Send one request, streamed into a draft; returns the stored answer or the failure."""
        deps = self._deps
        fields = self._request_fields(request, number)
        deps.hooks.request_started(fields, request)
        started_at = time.monotonic()
        draft = deps.store.draft(self._lease)
        meter = UsageMeter(deps.store, deps.provider, request)
        is_held = deps.hooks.changes_answers
        try:
            last = yield from self._stream(request, draft, meter, is_held=is_held)
        except BaseException:  # the consumer is gone; keep the streamed text
            self._keep_partial(draft, interrupted())
            meter.settle(interrupted())
            raise
        model = deps.provider.current.model
        settled = meter.settled(last)
        self._usage += (usage := settled.usage)
        changes: list[Change] = settled.changes(draft.uid)
        if isinstance(last, Reply):
            if not request.may_call:  # some servers let the model call tools all the same
                last = last._replace(calls=())
            received = last
            if not last.calls:
                last = last._replace(text=deps.hooks.final_answer(last.text))
                if number < deps.max_steps:
                    self._ask_hooks_to_end(last.text)
                    if not self._feedback:
                        changes += self._final_changes(self._finished(last, number), usage)
            text, row_id = last.text, self._store_answer(draft, last, changes)
            self.messages.append(last.message())
            deps.hooks.request_completed(fields, usage, received, started_at)
            deps.window.accept(usage.context)
        else:
            text, row_id = draft.text(), self._keep_partial(draft, last)
            if changes:
                deps.store.write(lambda tx: [change(tx) for change in changes])
            deps.hooks.request_failed(fields, last, started_at)
        if is_held and text:
            yield TextDelta(text)
        if row_id:
            yield MessageStored("assistant", row_id, settled.answer)
        yield UsageReport(usage, self._usage, model)
        return last

    def _ask_hooks_to_end(self, text: str) -> None:
        """Call the hooks before the end of the turn; one of them may ask to continue."""
        deps = self._deps
        reason = deps.hooks.continuation(text, self._continuations)
        self._is_limit_reached = bool(reason) and self._continuations >= MAX_CONTINUATIONS
        is_continued = not self._is_limit_reached and not deps.cancel.is_requested
        self._feedback = reason if is_continued else ""

    def _add_feedback(self) -> Notice:
        """Store why the turn continues; the model reads it as a message."""
        text = f"{FEEDBACK_PREFIX}{self._feedback}"
        self._deps.store.add_prompt(NewPrompt(text), self._lease, HOOK_FEEDBACK)
        self.messages.append({"role": "user", "content": text, "finish_reason": HOOK_FEEDBACK})
        self._continuations += 1
        notice = Notice(f"A hook continues the turn: {self._feedback}", ends_answer=True)
        self._feedback = ""
        return notice

    def _final_changes(self, finished: TurnFinished, usage: Usage) -> list[Change]:
        """The changes that are stored with the answer that ends the turn."""
        changes: list[Change] = []
        on_answer = self._deps.on_answer
        if on_answer is not None:
            # Without its delivery the answer is stored all the same.
            change = attempt("deliver the answer", lambda: on_answer(finished))
            if not isinstance(change, Failure):
                changes.append(change)
        if not is_due(usage.context, self._deps.provider.current.window):
            changes.append(lambda tx: leases.release(tx, self._lease))
            changes.append(self._deps.store.read_version)
            self._is_released = True  # from now on the lease is not renewed
        return changes

    def _store_answer(self, draft: Draft, reply: Reply, changes: list[Change]) -> int:
        try:
            row_id = draft.finish(reply.finish_reason, also=changes, **_fields_of(reply))
        except BaseException:
            self._is_released = False
            raise
        if row_id == JOURNALED_ROW_ID:  # the message is kept in the journal, without the changes
            for change in changes:
                self._deps.store.write(change)
        return row_id

    def _stream(
        self, request: ModelRequest, draft: Draft, meter: UsageMeter, *, is_held: bool
    ) -> Generator[Event, None, Reply | Failed]:
        """Stream the answer into the draft before showing it; returns the final event.

        Text *is_held* back where a plugin may change it.
        """
        for event in self._deps.provider.stream(request, self._deps.cancel):
            meter.observe(event)
            if isinstance(event, TextDelta):
                draft.write(event.text)
                if not is_held:
                    yield event
            elif isinstance(event, ReasoningDelta):
                draft.write(event.text, "reasoning")
                yield event
            elif isinstance(event, Retrying | Notice):
                if isinstance(event, Retrying) and event.drops_text:
                    draft.restart()
                yield event
            else:
                return event
        return Failed(FailureKind.BROKEN, "The provider ended the stream without a reply.")

    def _keep_partial(self, draft: Draft, failed: Failed) -> int:
        """Keep the streamed text, marked as incomplete."""
        text = draft.text()
        if not text and not draft.text("reasoning"):
            return 0
        is_stop = failed.kind is FailureKind.INTERRUPTED
        self.messages.append({"role": "assistant", "content": text})
        return int(draft.finish("interrupted" if is_stop else "error"))

    def _request_fields(self, request: ModelRequest, number: int) -> RequestFields:
        provider = self._deps.provider.current
        return {
            "api_request_id": f"{self._turn_id}-{number}",
            "model": provider.model,
            "provider": provider.name,
            "base_url": provider.base_url,
            "api_mode": provider.api_mode,
            "message_count": len(request.messages),
            "tool_count": len(request.tools),
        }

    # Tool calls

    def _run_calls(
        self, reply: Reply, request_id: str
    ) -> Generator[Event, None, ProblemNotice | None]:
        """Run the calls of an answer; returns why the turn is to be stopped, if it is."""
        deps, model = self._deps, self._deps.provider.current.model
        context = TurnContext(
            deps.store.session_id,
            self._turn_id,
            deps.cwd,
            deps.cancel,
            deps.prompter,
            deps.guard,
        )
        tool_hooks = deps.hooks.tool_hooks(request_id)
        cut = cut_calls(reply)
        results: dict[str, str] = {}
        groups = itertools.groupby(reply.calls, lambda call: call in cut)
        try:
            for event in itertools.chain.from_iterable(
                _fail_cut(group)
                if is_cut
                else deps.toolbox.run_calls(tuple(group), context, tool_hooks)
                for is_cut, group in groups
            ):
                if isinstance(event, ToolFinished):
                    result = with_news(event.result, deps.pop_news())
                    result = with_news(result, deps.hint(event.call, event.result), HINT_KEY)
                    row_id = deps.store.add_result(event.call, result, self._lease)
                    results[event.call.id] = event.result
                    self.messages.append(result_message(event.call, result))
                    yield event._replace(result=result)
                    yield MessageStored("tool", row_id)
                else:
                    yield event
        finally:
            for call in reply.calls:
                if call.id not in results:
                    lost = lost_result(call.id, call.name)
                    deps.store.add_result(call, str(lost["content"]), self._lease)
        if self._calls.add_cut(cut):
            return cut_call_notice(model)
        is_repeated = self._calls.add(reply.calls, results)
        return repetition_notice(model, reply.calls[0]) if is_repeated else None

    def _add_steering(self) -> Generator[Event, None, bool]:
        """Add the steering input to the conversation; whether there was some."""
        pending = self._deps.pop_steering()
        if pending:
            text = join_texts(pending)
            prompt = NewPrompt(text, joint_identity(pending))
            row_id = self._deps.store.add_prompt(prompt, self._lease)
            self.messages.append({"role": "user", "content": text})
            yield MessageStored("user", row_id, text=text)
        return bool(pending)


def _fields_of(reply: Reply) -> dict[str, Any]:
    return {**reply.message()}


def _with_problem(finished: TurnFinished, found: ProblemNotice) -> TurnFinished:
    return finished._replace(problem=found.problem, notice=found.text)


def _fail_cut(calls: Iterable[ToolCall]) -> Iterator[ToolStarted | ToolFinished]:
    """The events of calls that are not run because they were cut off."""
    for call in calls:
        yield ToolStarted(call)
        yield ToolFinished(call, failure(CUT_CALL_TEXT), 0.0)


def _with_context(question: Message, added: str) -> Message:
    """A prompt with the context added by plugins, which is not stored."""
    if not isinstance(question["content"], str):
        return question
    return {**question, "content": f"{question['content']}\n\n{added}"}
