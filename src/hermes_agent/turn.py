"""One turn: from what the user says to the last word of the answer.

The loop is a generator of events. Everything is in the store before its event leaves:
the user's words, each answer, each result; a streaming answer is checkpointed as it is
shown. However a turn ends, what was shown of it is kept.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.context.repair import lost_result
from hermes_agent.context.window import estimated
from hermes_agent.costs import Meter
from hermes_agent.events import (
    Failed,
    FailureKind,
    MessageStored,
    Notice,
    ReasoningDelta,
    Reply,
    Retrying,
    TextDelta,
    ToolFinished,
    TurnEnd,
    TurnFinished,
    TurnStarted,
    UsageReport,
)
from hermes_agent.messages import ModelRequest, Usage, answer_message, result_message
from hermes_agent.providers.base import interrupted
from hermes_agent.toolbox import BenchmarkContext
from hermes_agent.turn_control import identity, in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from hermes_agent.context.window import ContextWindow
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.events import Event
    from hermes_agent.messages import Message
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.toolbox import Guard, Toolbox
    from hermes_agent.tools.base import Asks
    from hermes_agent.turn_control import Cancel, Steered
    from hermes_agent.turn_hooks import TurnHooks
    from hermes_state.delivery.leases import Lease
    from hermes_state.messages.drafts import Draft

MAX_REQUESTS: Final = 90
OUT_OF_REQUESTS: Final = (
    "You have used all steps of this turn. Summarize what you found and what is left to do; "
    "do not call tools."
)


class TurnDependencies(NamedTuple):
    """What a turn works with."""

    keeping: ConversationStore
    patient: FallbackProvider
    toolbox: Toolbox
    hearing: TurnHooks
    asks: Asks
    guard: Guard
    cwd: Path
    system_prompt: str
    cancel: Cancel
    steered: Callable[[], list[Steered]]  # what the user said meanwhile, taken out
    room: ContextWindow


class Turn:
    """A turn under way."""

    def __init__(self, turn_id: str, means: TurnDependencies, lease: Lease) -> None:
        self._turn_id = turn_id
        self._means = means
        self._lease = lease
        self.messages: list[Message] = []
        self._usage = Usage()
        self._added = ""
        self.asked_at = 0  # where in the messages the turn's question stands

    def run(self, content: Any, *, is_first: bool, **fields: Any) -> Iterator[Event]:
        """The turn's events; the last is TurnFinished."""
        means = self._means
        self.messages = means.keeping.history()
        self._added = means.hearing.turn_starts(content, list(self.messages), is_first=is_first)
        row_id = means.keeping.say(content, self._lease, **fields)
        self.asked_at = len(self.messages)
        self.messages.append({"role": "user", "content": content})
        yield TurnStarted(means.keeping.session_id, self._turn_id)
        yield MessageStored("user", row_id)
        finished = yield from self._loop()
        if finished.end is TurnEnd.COMPLETE:
            means.hearing.answered(content, finished.text, list(self.messages))
        yield finished

    def go_on(self) -> Iterator[Event]:
        """The rest of a turn that was broken off: nothing is said, an answer is asked for."""
        self._means.keeping.drop_unfinished()
        self.messages = self._means.keeping.history()
        self.asked_at = max(
            (place for place, one in enumerate(self.messages) if one["role"] == "user"), default=0
        )
        yield TurnStarted(self._means.keeping.session_id, self._turn_id)
        yield (yield from self._loop())

    def _loop(self) -> Generator[Event, None, TurnFinished]:
        for number in range(1, MAX_REQUESTS + 1):
            tools = self._means.toolbox.schemas() if number < MAX_REQUESTS else []
            answer = yield from self._ask_with_room(tools, number)
            if isinstance(answer, Failed):
                return self._failure(answer)
            if not answer.calls:
                is_over = number == MAX_REQUESTS
                end = TurnEnd.TOO_LONG if is_over else TurnEnd.COMPLETE
                return TurnFinished(end, answer.text, self._usage)
            yield from self._carry_out(answer, f"{self._turn_id}-{number}")
            if self._means.cancel.is_requested:
                return TurnFinished(TurnEnd.INTERRUPTED, answer.text, self._usage)
            yield from self._take_steering()
        return TurnFinished(TurnEnd.TOO_LONG, "", self._usage)

    def _failure(self, failed: Failed) -> TurnFinished:
        text = str(self.messages[-1].get("content") or "") if self._was_partial() else ""
        if failed.kind is FailureKind.INTERRUPTED:
            return TurnFinished(TurnEnd.INTERRUPTED, text, self._usage)
        return TurnFinished(TurnEnd.FAILED, text, self._usage, str(failed))

    def _was_partial(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("role") == "assistant"

    # Asking

    def as_read(self) -> list[Message]:
        """The conversation as the model reads it, from the prompt to the last word."""
        messages = self._means.room.fitted(self.messages)
        if self._added:
            messages[self.asked_at] = _with_context(messages[self.asked_at], self._added)
        return [{"role": "system", "content": self._means.system_prompt}, *messages]

    def _request(self, tools: list[dict[str, Any]], number: int) -> ModelRequest:
        messages = self.as_read()
        if number == MAX_REQUESTS:
            messages.append({"role": "user", "content": OUT_OF_REQUESTS})
        return ModelRequest(messages, tools)

    def _ask_with_room(
        self, tools: list[dict[str, Any]], number: int
    ) -> Generator[Event, None, Reply | Failed]:
        """Ask; a conversation that is too long is shortened first, or once it was refused."""
        request = self._request(tools, number)
        if self._means.room.is_short(request):
            yield from self._make_room(request, number)
        answer = yield from self._ask(tools, number)
        if not self._is_too_long(answer):
            return answer
        request = self._request(tools, number)
        self._means.room.learn(request)
        has_room = yield from self._make_room(request, number)
        return (yield from self._ask(tools, number)) if has_room else answer

    def _is_too_long(self, answer: Reply | Failed) -> bool:
        """Whether it was refused for its length; what was shown already is not asked again."""
        is_refused = isinstance(answer, Failed) and answer.kind is FailureKind.CONTEXT
        return is_refused and not self._was_partial() and not self._means.cancel.is_requested

    def _make_room(self, request: ModelRequest, number: int) -> Generator[Event, None, bool]:
        """Make a request shorter than *request* was; whether that could be done."""
        done = self._means.room.make()
        since = len(self.messages) - self.asked_at
        self.messages = self._means.keeping.history()
        self.asked_at = len(self.messages) - since
        if self.asked_at < 0:  # the question itself was summed up
            self._added, self.asked_at = "", 0
        if estimated(self._request(request.tools, number)) >= estimated(request):
            return False
        yield Notice(done)
        return True

    def _ask(
        self, tools: list[dict[str, Any]], number: int
    ) -> Generator[Event, None, Reply | Failed]:
        """One request, streamed into a draft; the stored answer, or why there is none."""
        means = self._means
        request = self._request(tools, number)
        facts = self._facts(request, number)
        means.hearing.asked({**facts, "request": None})
        began = time.monotonic()
        draft = means.keeping.draft(self._lease)
        meter = Meter(means.keeping, means.patient, request)
        try:
            last = yield from self._stream(request, draft, meter)
        except BaseException:  # nobody listens any more: what was shown stays
            self._keep_partial(draft, interrupted())
            meter.settle(interrupted())
            raise
        model = means.patient.current.model
        used = meter.settle(last)
        self._usage += used
        if isinstance(last, Reply):
            row_id = draft.finish(
                last.finish_reason,
                content=last.text,
                reasoning=last.reasoning or None,
                tool_calls=[call.stored() for call in last.calls] or None,
            )
            self.messages.append(answer_message(last.text, last.calls))
            means.hearing.replied(facts, used, last.finish_reason, began)
        else:
            row_id = self._keep_partial(draft, last)
            means.hearing.refused(facts, str(last), retryable=last.is_passing, began=began)
        if row_id:
            yield MessageStored("assistant", row_id)
        yield UsageReport(used, self._usage, model)
        return last

    def _stream(
        self, request: ModelRequest, draft: Draft, meter: Meter
    ) -> Generator[Event, None, Reply | Failed]:
        """What the model says, into the draft before it is shown; its last word."""
        for event in self._means.patient.stream(request, self._means.cancel):
            meter.see(event)
            if isinstance(event, TextDelta):
                draft.write(event.text)
                yield event
            elif isinstance(event, ReasoningDelta):
                draft.write(event.text, "reasoning")
                yield event
            elif isinstance(event, Retrying):
                yield event
            else:
                return event
        return Failed(FailureKind.BROKEN, "The provider ended the stream without a reply.")

    def _keep_partial(self, draft: Draft, failed: Failed) -> int:
        """What was shown stays, marked for what it is."""
        text = draft.text()
        if not text and not draft.text("reasoning"):
            return 0
        is_stop = failed.kind is FailureKind.INTERRUPTED
        self.messages.append({"role": "assistant", "content": text})
        return int(draft.finish("interrupted" if is_stop else "error"))

    def _facts(self, request: ModelRequest, number: int) -> dict[str, Any]:
        provider = self._means.patient.current
        return {
            "api_request_id": f"{self._turn_id}-{number}",
            "model": provider.model,
            "provider": provider.name,
            "base_url": provider.base_url,
            "api_mode": provider.api_mode,
            "message_count": len(request.messages),
            "tool_count": len(request.tools),
        }

    # Acting

    def _carry_out(self, reply: Reply, request_id: str) -> Iterator[Event]:
        means = self._means
        around = BenchmarkContext(
            means.keeping.session_id,
            self._turn_id,
            means.cwd,
            means.cancel,
            means.asks,
            means.guard,
        )
        watch = means.hearing.watch(request_id)
        answered: set[str] = set()
        try:
            for event in means.toolbox.carry_out(reply.calls, around, watch):
                if isinstance(event, ToolFinished):
                    row_id = means.keeping.result(event.call, event.result, self._lease)
                    answered.add(event.call.id)
                    self.messages.append(result_message(event.call, event.result))
                    yield event
                    yield MessageStored("tool", row_id)
                else:
                    yield event
        finally:
            for call in reply.calls:
                if call.id not in answered:
                    lost = lost_result(call.id, call.name)
                    means.keeping.result(call, lost["content"], self._lease)

    def _take_steering(self) -> Iterator[Event]:
        """What the user said meanwhile becomes part of the conversation now."""
        steered = self._means.steered()
        if steered:
            text = in_words(steered)
            row_id = self._means.keeping.say(text, self._lease, **identity(steered))
            self.messages.append({"role": "user", "content": text})
            yield MessageStored("user", row_id)


def _with_context(question: Message, added: str) -> Message:
    """A question with what plugins add to it; nothing of it is stored."""
    if not isinstance(question["content"], str):
        return question
    return {**question, "content": f"{question['content']}\n\n{added}"}
