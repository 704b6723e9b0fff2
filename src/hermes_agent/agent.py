"""AIAgent: one conversation, bound to the store.

All state is in the store, so any process can resume the conversation.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hermes_agent.context.compaction import SummaryInput, compact, is_due
from hermes_agent.context.system_prompt import INTERRUPTED, is_interrupted, last_facts, note_of
from hermes_agent.context.window import SUMMARIZED_NOTICE, ContextWindow, profile_for
from hermes_agent.conversation_store import ConversationStore, NewPrompt
from hermes_agent.costs import complete
from hermes_agent.events import (
    Failed,
    FailureKind,
    Notice,
    TextDelta,
    ToolFinished,
    TurnEnd,
    TurnFinished,
    UsageReport,
    outcome,
)
from hermes_agent.hints import NoHints, hints_in
from hermes_agent.memory.review import ReviewDependencies, Reviews
from hermes_agent.messages import ANONYMOUS, PromptIdentity, ToolCall, Usage
from hermes_agent.toolbox import TurnContext, no_guard
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_agent.turn import MAX_STEPS, Turn, TurnDependencies
from hermes_agent.turn_control import (
    DEFAULT_LIMITS,
    Cancel,
    Steering,
    TurnDeadline,
    WaitingPrompter,
    join_texts,
)
from hermes_agent.turn_hooks import TurnHooks, TurnIdentity, no_plugins
from hermes_core.ids import new_session_id
from hermes_core.isolate import Failure, attempt
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.checkpoints.turn_checkpoints import TurnCheckpoints
    from hermes_agent.context.compaction import CompactionResult
    from hermes_agent.context.system_prompt import Situation
    from hermes_agent.context.window import AgentProfile
    from hermes_agent.events import Event, Reply, TurnOutcome
    from hermes_agent.hints import Hints
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.toolbox import Guard, Toolbox
    from hermes_agent.turn import AnswerHook
    from hermes_agent.turn_control import TurnLimits
    from hermes_agent.turn_hooks import HookInvoker, TurnPlugins
    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.leases import Lease
    from hermes_state.store import SessionDB


RENEW_SECONDS: Final = 20.0


@contextlib.contextmanager
def renewing_lease(
    later: Callable[[float, Callable[[], object]], object],
    renew: Callable[[], object],
    on_lost: Callable[[], object],
    seconds: float = RENEW_SECONDS,
) -> Iterator[None]:
    """Renew the turn's lease while the body runs; *on_lost* is called when that fails.

    *later* runs a function after some seconds, in a thread that all turns share.
    """
    is_over = threading.Event()

    def renew_once() -> None:
        if is_over.is_set():
            return
        if not isinstance(attempt("renew the turn", renew), Failure):
            later(seconds, renew_once)
        elif not is_over.is_set():
            on_lost()

    later(seconds, renew_once)
    try:
        yield
    finally:
        is_over.set()


def _at_deadline(finished: TurnFinished, deadline: TurnDeadline) -> TurnFinished:
    """A turn that its deadline has stopped has failed."""
    if not deadline.reason or finished.end is not TurnEnd.INTERRUPTED:
        return finished
    failure = Failed(FailureKind.TIMEOUT, deadline.reason)
    return finished._replace(end=TurnEnd.FAILED, error=deadline.reason, failure=failure)


CLOSE_SECONDS: Final = 1.0  # how long `close` waits for a cancelled review


class _BegunTurn(NamedTuple):
    """The lease of a turn; its prompt, and the row of one that is stored already."""

    lease: Lease
    prompt: NewPrompt | None
    row_id: int | None = None
    is_new: bool = False  # whether the session is


class WritesPrompts(Protocol):
    """Writes the system prompt, and knows what changes after it was written."""

    def profile(
        self, window: int, cwd: Path, question: str = "", *, is_new: bool = False
    ) -> AgentProfile:
        """The prompt and the tools; the stored prompt, unless a new one is asked for."""
        ...

    def situation(self, window: int, cwd: Path, told: JsonObject) -> Situation:
        """The situation of a conversation that has been *told* some facts."""
        ...

    def note_use(self) -> None:
        """Count what the prompt of a conversation that has begun contains."""
        ...


class ContextParts(NamedTuple):
    """The parts of a request."""

    system_prompt: str
    tool_tokens: int
    messages: list[Message]


class AIAgent:
    """A conversation that runs turns."""

    def __init__(
        self,
        store: SessionDB,
        provider: FallbackProvider,
        toolbox: Toolbox,
        *,
        session_id: str | None = None,
        platform: str = "cli",
        source: str | None = None,
        cwd: Path | None = None,
        system_prompt: str = "",
        prompter: Any = None,
        announce: HookInvoker = no_plugins,
        plugins: TurnPlugins | None = None,
        guard: Guard = no_guard,
        prompts: WritesPrompts | None = None,
        review_turns: int = 0,
        limits: TurnLimits = DEFAULT_LIMITS,
        checkpoints: TurnCheckpoints | None = None,
        max_steps: int = MAX_STEPS,
        pop_news: Callable[[], str] = str,
        hints: Hints | None = None,
        **fields: Any,
    ) -> None:
        self._hints = hints or NoHints()
        self._pop_news = pop_news
        self._news: list[str] = []  # that the note of the next prompt tells
        self._limits = limits
        self._checkpoints = checkpoints
        self._max_steps = max_steps
        self.session_id = session_id or new_session_id(store.clock)
        self.platform = platform
        self.cwd = cwd or Path.cwd()
        self.prompter = prompter or NonInteractivePrompter()
        self._store = store
        self._provider = provider
        self._toolbox = toolbox
        self._prompt = system_prompt
        self._begun_with: str | None = None  # the system prompt at the start of the last turn
        self._announce = announce
        self._plugins = plugins
        self._guard = guard
        self._prompts = prompts
        self._has_profile = False  # it needs the model's window, which is probed late
        self._prompt_facts: JsonObject = {}  # that the prompt tells
        self._system: Message = {"role": "system", "content": system_prompt}
        self._notices: tuple[str, ...] = ()
        self._reviews = Reviews(review_turns, self._announce_review)
        self.on_review: Callable[[str], object] | None = None  # receives what was remembered
        self.reviews_at_end = True
        self._session_messages: list[Message] | None = None
        self._has_unannounced_turn = False
        self._cancel = Cancel()
        self._is_turn_expected = False
        self._is_running = False
        self._steering = Steering()
        self.context_tokens = 0  # of the last request
        self._lock = threading.Lock()
        self.conversation_store = ConversationStore(
            store,
            self.session_id,
            source or platform,
            model=provider.current.model,
            cwd=str(self.cwd),
            **fields,
        )

    @property
    def model(self) -> str:
        """The name of the current model."""
        return self._provider.current.model

    @property
    def is_demo(self) -> bool:
        """Whether the current model is too small for more than trying things out."""
        return self._provider.current.is_demo

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self._provider.current.window

    def tool_names(self) -> list[str]:
        """The tools offered to the model; fewer for a small context window."""
        self._apply_profile()
        return self._toolbox.names()

    def context_parts(self) -> ContextParts:
        """What the next request contains besides the next message."""
        self._apply_profile()
        history = self.conversation_store.read_history()
        return ContextParts(self._prompt, self._toolbox.schema_tokens, history)

    def hint_tokens(self) -> tuple[int, int]:
        """The number of hints from the history in this conversation, and their tokens."""
        return hints_in(self.conversation_store.read_history())

    def _apply_profile(self, question: str = "") -> None:
        """Choose prompt and tools by the context window and the first question, once."""
        window = self._provider.current.resolve_window()
        if self._prompts is not None and not self._has_profile:
            self._has_profile = True
            profile = self._prompts.profile(window, self.cwd, question)
            self._prompt, self._prompt_facts, self._toolbox, self._notices = profile

    def _with_changes(self, prompt: NewPrompt, messages: list[Message]) -> NewPrompt:
        """A prompt with a note about what has happened and changed since the last one."""
        if not self.conversation_store.keeps_notes:
            return prompt
        lines = [INTERRUPTED] if is_interrupted(messages) else []
        lines += self._news
        facts = last_facts(messages, self._prompt_facts)
        if self._prompts is not None:
            situation = self._prompts.situation(self.window, self.cwd, facts)
            changes = situation.changes(facts, self._prompt, profile_for(self.window))
            lines, facts = [*lines, *changes], situation.facts()
        return prompt._replace(note=note_of(lines, facts)) if lines else prompt

    def _renew_prompt(self) -> None:
        """Write the system prompt again: the provider's cache is lost anyway."""
        if self._prompts is not None:
            profile = self._prompts.profile(self.window, self.cwd, is_new=True)
            self._prompt, self._prompt_facts = profile.prompt, profile.facts
            self.conversation_store.set_prompt(self._prompt, self._prompt_facts)

    # Turns

    def turn(
        self,
        content: Any,
        identity: PromptIdentity = ANONYMOUS,
        on_answer: AnswerHook | None = None,
    ) -> Iterator[Event]:
        """Run a turn with a user message; yields its events, the last is TurnFinished.

        *on_answer* returns a change that is stored in the same transaction as the answer.
        """
        return self._run_turn(on_answer, NewPrompt(content, identity))

    def resume(self, on_answer: AnswerHook | None = None) -> Iterator[Event]:
        """Continue an unfinished turn without a new user message."""
        return self._run_turn(on_answer)

    def _run_turn(
        self, on_answer: AnswerHook | None, prompt: NewPrompt | None = None
    ) -> Iterator[Event]:
        if not self._is_turn_expected:
            self._cancel = Cancel()
        self._is_turn_expected, self._has_unannounced_turn = False, True
        self._apply_profile("" if prompt is None else plain_text(prompt.content))
        turn_id = self._store.ids.new()
        hooks = self._hooks(turn_id, prompt.identity.sender_id if prompt is not None else "")
        begun = self._begin(hooks, prompt)
        finished: TurnFinished | None = None
        last_usage = Usage()
        later = self._store.engine.writer().later
        deadline = TurnDeadline(self._limits, self._cancel, later)
        dependencies = self._dependencies(hooks, deadline)._replace(on_answer=on_answer)
        turn = Turn(turn_id, dependencies, begun.lease)
        if begun.prompt is None:
            events = turn.resume()
        else:
            events = turn.run(begun.prompt, is_first=begun.is_new, row_id=begun.row_id)
        self._is_running = True
        if self._checkpoints is not None:
            self._checkpoints.begin(self._last_prompt)
        try:
            with renewing_lease(later, turn.renew_lease, self._lose_turn), deadline.watching():
                yield from self._warn()
                for event in events:
                    deadline.note(event)
                    if isinstance(event, TurnFinished):
                        finished = _at_deadline(event, deadline)
                        self._session_messages = list(turn.messages)
                    else:
                        if isinstance(event, UsageReport):
                            last_usage = event.request
                            self.context_tokens = last_usage.context or self.context_tokens
                        yield event
                if finished is not None and finished.end is TurnEnd.COMPLETE:
                    yield from self._compact_if_due(last_usage)
        finally:
            self._is_running = False
            notices = [] if self._checkpoints is None else self._checkpoints.finish()
            dependencies.window.forget_guess()
            turn.release_lease()
            self._hints.turn_ended(self.session_id)
            is_complete = finished is not None and finished.end is TurnEnd.COMPLETE
            is_stopped = finished is None or finished.end is TurnEnd.INTERRUPTED
            hooks.turn_ended(completed=is_complete, interrupted=is_stopped)
            self._has_unannounced_turn = False
        yield from map(Notice, notices)
        if finished is not None:
            if is_complete:
                self._reviews.after_turn(turn, self._review_dependencies(hooks))
            yield finished

    def _begin(self, hooks: TurnHooks, prompt: NewPrompt | None) -> _BegunTurn:
        """Acquire the lease, and store the prompt with it if the messages before it are kept."""
        store, holder = self.conversation_store, f"{self.platform}, {self.model}"
        if prompt is not None and store.keeps_notes:
            self._news = self._pop_news().splitlines()
        if prompt is not None and store.kept_messages and self._begun_with == self._prompt:
            changed = self._with_changes(prompt, store.kept_messages)
            started = store.start_turn(holder, changed)
            if started is not None:
                return _BegunTurn(started.lease, changed, started.row_id)
        is_new = store.begin(self._prompt, self._prompt_facts)
        self._begun_with = self._prompt
        if is_new:
            hooks.session_started()
            if self._prompts is not None:
                self._prompts.note_use()
        return _BegunTurn(store.acquire_turn(holder), prompt, is_new=is_new)

    def _last_prompt(self) -> tuple[str, int]:
        """The session ID and the row of the last prompt, for the checkpoint of a turn."""
        return self.session_id, max(self._store.edits.prompt_ids(self.session_id), default=0)

    def _warn(self) -> Iterator[Event]:
        """Yield what the user should know about the prompt and the tools, once."""
        notices, self._notices = self._notices, ()
        yield from map(Notice, notices)

    def compress(self, focus: str = "") -> CompactionResult | Failed:
        """Summarize older messages to free up context."""
        self._cancel = Cancel()  # that of the last turn may have been requested
        return self._compress(focus, "manual")

    def _compress(self, focus: str = "", trigger: str = "auto") -> CompactionResult | Failed:
        """Summarize as part of a turn, with its cancellation."""
        self._apply_profile()
        self._announce(
            "pre_compaction",
            session_id=self.session_id,
            trigger=trigger,
            focus=focus,
            platform=self.platform,
        )
        given = SummaryInput(
            self._prompt, self._toolbox.schemas(), focus, is_requested=trigger == "manual"
        )
        result = compact(self.conversation_store, self._provider, given, self._cancel)
        if not isinstance(result, Failed) and result.summary:
            self._renew_prompt()
        return result

    def _compact_if_due(self, usage: Usage) -> Iterator[Event]:
        """Compact if the last request came close to the context window."""
        if not is_due(usage.context, self.window):
            return
        result = self._compress()
        if isinstance(result, Failed):
            yield Notice(f"The conversation is too long and could not be summarized: {result}")
        elif result.summary:
            yield Notice(SUMMARIZED_NOTICE)

    def _lose_turn(self) -> None:
        """Stop because another process has taken over the conversation."""
        self.interrupt("taken over by another process")

    @property
    def is_running(self) -> bool:
        """Whether a turn is running."""
        return self._is_running

    def call_tool(self, name: str, arguments: JsonObject) -> str:
        """Call a tool for a plugin, with the permissions of the conversation; the result."""
        self._apply_profile()
        call_id = self._store.ids.new()
        cancel = self._cancel if self._is_running else Cancel()
        context = TurnContext(
            self.session_id, call_id, self.cwd, cancel, self.prompter, self._guard
        )
        events = self._toolbox.run_calls(
            (ToolCall(call_id, name, json.dumps(arguments)),),
            context,
            self._hooks(call_id).tool_hooks(call_id),
        )
        return [event.result for event in events if isinstance(event, ToolFinished)][-1]

    def complete(self, request: ModelRequest, *, is_counted: bool = True) -> Reply | Failed:
        """Send a request that is not part of the conversation; a stored one counts its usage."""
        store = self.conversation_store if is_counted else None
        return complete(self._provider.copy(), request, Cancel(), store)

    def expect_turn(self) -> None:
        """Note that a turn starts soon: an interrupt from now on stops it."""
        self._cancel = Cancel()
        self._is_turn_expected = True

    def interrupt(self, reason: str = "interrupted") -> None:
        """Interrupt the running turn; streamed text is kept."""
        self._cancel.request(reason)

    @property
    def is_stopping(self) -> bool:
        """Whether the running turn was interrupted."""
        return self._cancel.is_requested

    def steer(self, text: str, uid: str | None = None) -> None:
        """Add input to the running turn; the model reads it after the next tool result.

        *uid* is the message ID it is stored with.
        """
        self._steering.add(text, uid)

    def pending_steering(self) -> list[str]:
        """The steering input that the turn has not read yet."""
        return self._steering.texts()

    def withdraw_steering(self, uid: str) -> None:
        """Remove steering input that the turn has not read, because its sender deleted it."""
        self._steering.discard(uid)

    def pop_steering(self) -> str:
        """Remove and return the steering input that the turn has not read."""
        return join_texts(self._steering.pop_all())

    def _hooks(self, turn_id: str, sender_id: str = "") -> TurnHooks:
        identity = TurnIdentity(
            self.session_id, turn_id, self.session_id, self.model, self.platform, sender_id
        )
        return TurnHooks(self._announce, identity, self._plugins)

    def _dependencies(self, hooks: TurnHooks, deadline: TurnDeadline) -> TurnDependencies:
        return TurnDependencies(
            self.conversation_store,
            self._provider,
            self._toolbox,
            hooks,
            WaitingPrompter(self.prompter, deadline),
            self._guard,
            self.cwd,
            self._system_message,
            self._cancel,
            self._steering.pop_all,
            ContextWindow(self._provider, self._compress),
            self.conversation_store.prepared,
            self._with_changes,
            pop_news=self._pop_news,
            max_steps=self._max_steps,
            hint=functools.partial(self._hints.about, self.session_id, self.cwd),
        )

    def _system_message(self) -> Message:
        """The system prompt as a message; the same object as long as it does not change."""
        if self._system["content"] != self._prompt:
            self._system = {"role": "system", "content": self._prompt}
        return self._system

    # Memory reviews

    def _review_dependencies(self, hooks: TurnHooks) -> ReviewDependencies:
        review_provider, prompter = self._provider.copy(), NonInteractivePrompter()
        return ReviewDependencies(
            self.conversation_store,
            review_provider,
            self._toolbox,
            hooks,
            prompter,
            self._guard,
            self.cwd,
        )

    def _announce_review(self, text: str) -> None:
        if self.on_review is not None:
            self.on_review(text)

    def wait_for_review(self, seconds: float) -> bool:
        """Wait for the end of a review; whether none is running."""
        return self._reviews.wait(seconds)

    def run_conversation(
        self,
        user_message: Any,
        system_message: str | None = None,
        stream_callback: Callable[[str], object] | None = None,
        **_ignored: Any,
    ) -> TurnOutcome:
        """Run a turn to its end; returns the outcome. The history is that of the store."""
        if system_message is not None:
            self._prompt = system_message
        last: TurnFinished | None = None
        for event in self.turn(user_message):
            if isinstance(event, TextDelta) and stream_callback is not None:
                stream_callback(event.text)
            if isinstance(event, TurnFinished):
                last = event
        return outcome(last, self._session_messages or [], self.session_id)

    # Finalization

    def announce_end(self) -> None:
        """Announce the end of a turn that was given up before it ended."""
        if self._has_unannounced_turn:
            self._has_unannounced_turn = False
            self._hooks(self._store.ids.new()).turn_ended(completed=False, interrupted=True)

    def history_was_changed(self) -> None:
        """Drop the messages of the last turn after an undo or redo."""
        self._session_messages = None
        self.conversation_store.forget_messages()

    def close(self) -> None:
        """Close connections; the conversation stays in the store."""
        self._reviews.stop(CLOSE_SECONDS)
        self._provider.close()

    def commit_memory(self) -> None:
        """Start a memory review of the turns not reviewed yet, at the end of a conversation.

        It runs in the background for at most a minute and is lost if the process exits.
        During a shutdown `reviews_at_end` is off.
        """
        if self.reviews_at_end and self._reviews.is_due_at_end:
            messages = ContextWindow(self._provider, self._compress).shortened(
                self.conversation_store.read_history()
            )
            system: Message = {"role": "system", "content": self._prompt}
            hooks = self._hooks(self._store.ids.new())
            self._reviews.start(
                self._review_dependencies(hooks), [system, *messages], self._provider.close
            )
