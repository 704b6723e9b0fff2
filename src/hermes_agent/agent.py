"""AIAgent: one conversation, bound to the store.

It can be left and taken up again by any process: nothing that matters lives in it.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.context.compaction import compact, is_due
from hermes_agent.context.window import SUMMED_UP, ContextWindow
from hermes_agent.conversation_store import ConversationStore
from hermes_agent.events import (
    Failed,
    Notice,
    TextDelta,
    TurnEnd,
    TurnFinished,
    UsageReport,
    outcome,
)
from hermes_agent.memory.review import Looking, Reviews
from hermes_agent.messages import Usage
from hermes_agent.toolbox import no_guard
from hermes_agent.tools.base import NonInteractivePrompter
from hermes_agent.turn import Turn, TurnDependencies
from hermes_agent.turn_control import Cancel, Steering, in_words
from hermes_agent.turn_hooks import TurnHooks, Who, nobody
from hermes_core.ids import new_session_id
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.context.compaction import Compacted
    from hermes_agent.context.profiles import AgentProfile
    from hermes_agent.events import Event
    from hermes_agent.messages import Message
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.toolbox import Guard, Toolbox
    from hermes_agent.turn_hooks import Announces
    from hermes_state import SessionDB

EVERY_SECONDS: Final = 20.0


@contextlib.contextmanager
def beating(
    renew: Callable[[], object], lost: Callable[[], object], seconds: float = EVERY_SECONDS
) -> Iterator[None]:
    """Renew the right to run while the body runs; *lost* is called when it cannot be had."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(seconds):
            if attempt(Step("renew the turn", renew)) is not None:
                lost()
                return

    thread = threading.Thread(target=beat, name="hermes-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5)


CLOSE_SECONDS: Final = 1.0  # how long leaving waits for a review to see that it is unwanted


class AIAgent:
    """A conversation that can be talked to."""

    def __init__(
        self,
        store: SessionDB,
        patient: FallbackProvider,
        toolbox: Toolbox,
        *,
        session_id: str | None = None,
        platform: str = "cli",
        source: str | None = None,
        cwd: Path | None = None,
        system_prompt: str = "",
        asks: Any = None,
        announce: Announces = nobody,
        guard: Guard = no_guard,
        on_finalize: Callable[[list[Message]], object] | None = None,
        outfit: Callable[[int], AgentProfile] | None = None,
        review_turns: int = 0,
        **facts: Any,
    ) -> None:
        self.session_id = session_id or new_session_id(store.clock)
        self.platform = platform
        self.cwd = cwd or Path.cwd()
        self.asks = asks or NonInteractivePrompter()
        self._store = store
        self._patient = patient
        self._toolbox = toolbox
        self._prompt = system_prompt
        self._announce = announce
        self._guard = guard
        self._on_finalize = on_finalize
        self._outfit = outfit  # by the model's window, which is asked for as late as possible
        self._warning = ""
        self._reviews = Reviews(review_turns, self._tell)
        self.on_review: Callable[[str], object] | None = None  # hears what was remembered
        self.reviews_at_end = True
        self._session_messages: list[Message] | None = None
        self.has_announced_end = False
        self._cancel = Cancel()
        self._steering = Steering()
        self.context_tokens = 0  # of the last request: how full the window is
        self._lock = threading.Lock()
        self.keeping = ConversationStore(
            store,
            self.session_id,
            source or platform,
            model=patient.current.model,
            cwd=str(self.cwd),
            **facts,
        )

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._patient.current.model

    @property
    def window(self) -> int:
        """How many tokens the model can read at once."""
        return self._patient.current.window

    def tool_names(self) -> list[str]:
        """The tools that it takes along; fewer where the model reads little."""
        self._fit_out()
        return self._toolbox.names()

    def _fit_out(self) -> None:
        """Choose prompt and tools by how much the model reads, once."""
        window = self._patient.current.learn_window()
        if self._outfit is not None:
            self._prompt, self._toolbox, self._warning = self._outfit(window)
            self._outfit = None

    # Talking

    def turn(self, content: Any, **fields: Any) -> Iterator[Event]:
        """Say something; the events of the turn, the last of which is TurnFinished."""
        return self._play(lambda turn, is_new: turn.run(content, is_first=is_new, **fields))

    def go_on(self) -> Iterator[Event]:
        """Go on with a turn that was broken off; what was said in it is not said again."""
        return self._play(lambda turn, _is_new: turn.go_on())

    def _play(self, play: Callable[[Turn, bool], Iterator[Event]]) -> Iterator[Event]:
        self._cancel = Cancel()
        self.has_announced_end = False
        self._fit_out()
        is_new = self.keeping.begin(self._prompt)
        turn_id = self._store.ids.new()
        hearing = TurnHooks(self._announce, self._who(turn_id))
        if is_new:
            hearing.session_starts()
        lease = self.keeping.take_turn(f"{self.platform}, {self.model}")
        finished: TurnFinished | None = None
        last_usage = Usage()
        turn = Turn(turn_id, self._means(hearing), lease)
        try:
            with beating(lambda: self.keeping.renew_turn(lease), self._lose_turn):
                yield from self._warn()
                for event in play(turn, is_new):
                    if isinstance(event, TurnFinished):
                        finished = event
                        self._session_messages = list(turn.messages)
                    else:
                        if isinstance(event, UsageReport):
                            last_usage = event.request
                            self.context_tokens = last_usage.context or self.context_tokens
                        yield event
                if finished is not None and finished.end is TurnEnd.COMPLETE:
                    yield from self._make_room(last_usage)
        finally:
            self.keeping.give_turn_back(lease)
            is_complete = finished is not None and finished.end is TurnEnd.COMPLETE
            is_stopped = finished is None or finished.end is TurnEnd.INTERRUPTED
            hearing.turn_ends(completed=is_complete, interrupted=is_stopped)
            self.has_announced_end = True
        if finished is not None:
            if is_complete:
                self._reviews.turn_is_over(turn, self._looking(hearing))
            yield finished

    def _warn(self) -> Iterator[Event]:
        """Say once what the model's window means."""
        warning, self._warning = self._warning, ""
        if warning:
            yield Notice(warning)

    def compress(self, focus: str = "") -> Compacted | Failed:
        """Sum up what was said before, so that there is room to go on."""
        self._cancel = Cancel()  # that of the last turn may have been used
        return self._compress(focus)

    def _compress(self, focus: str = "") -> Compacted | Failed:
        """The same as part of a turn: what stops that stops this."""
        self._fit_out()
        return compact(self.keeping, self._patient, self._prompt, self._cancel, focus)

    def _make_room(self, usage: Usage) -> Iterator[Event]:
        """Compact when the last request was close to what the model can read."""
        if not is_due(usage.context, self.window):
            return
        result = self._compress()
        if isinstance(result, Failed):
            yield Notice(f"The conversation is too long and could not be summarized: {result}")
        elif result.summary:
            yield Notice(SUMMED_UP)

    def _lose_turn(self) -> None:
        """Another process has taken the conversation over: this one stops."""
        self.interrupt("taken over by another process")

    def interrupt(self, reason: str = "interrupted") -> None:
        """Stop the running turn; what was shown is kept."""
        self._cancel.request(reason)

    def steer(self, text: str, uid: str | None = None) -> None:
        """Say something while a turn runs: the model reads it after the next tool result.

        *uid* is the identity it is stored with.
        """
        self._steering.add(text, uid)

    def pending_steering(self) -> list[str]:
        """The steering input that the turn has not read yet."""
        return self._steering.texts()

    def take_steering(self) -> str:
        """What was said to the turn and not read by it yet; it is read now."""
        return in_words(self._steering.take())

    def _who(self, turn_id: str) -> Who:
        return Who(self.session_id, turn_id, self.session_id, self.model, self.platform)

    def _means(self, hearing: TurnHooks) -> TurnDependencies:
        return TurnDependencies(
            self.keeping,
            self._patient,
            self._toolbox,
            hearing,
            self.asks,
            self._guard,
            self.cwd,
            self._prompt,
            self._cancel,
            self._steering.take,
            ContextWindow(self._patient, self._compress),
        )

    # Looking back

    def _looking(self, hearing: TurnHooks) -> Looking:
        twin, asks = self._patient.twin(), NonInteractivePrompter()
        return Looking(self.keeping, twin, self._toolbox, hearing, asks, self._guard, self.cwd)

    def _tell(self, text: str) -> None:
        if self.on_review is not None:
            self.on_review(text)

    def wait_for_review(self, seconds: float) -> bool:
        """Wait for the end of a review; whether none is under way."""
        return self._reviews.wait(seconds)

    def run_conversation(
        self,
        user_message: Any,
        system_message: str | None = None,
        conversation_history: list[Message] | None = None,
        task_id: str | None = None,
        stream_callback: Callable[[str], object] | None = None,
        **_ignored: Any,
    ) -> dict[str, Any]:
        """Say something and wait for the end of the turn; what became of it."""
        del task_id
        if system_message is not None:
            self._prompt = system_message
        if conversation_history:
            self._persist_session(conversation_history)
        last: TurnFinished | None = None
        for event in self.turn(user_message):
            if isinstance(event, TextDelta) and stream_callback is not None:
                stream_callback(event.text)
            if isinstance(event, TurnFinished):
                last = event
        return outcome(last, self._session_messages or [], self.session_id)

    # Ending

    def _persist_session(
        self, messages: list[Message], conversation_history: list[Message] | None = None
    ) -> None:
        """Make sure that *messages* are stored; what the caller takes to be old decides nothing."""
        del conversation_history
        self.keeping.begin(self._prompt)
        self.keeping.make_sure_of(messages)

    def history_was_changed(self) -> None:
        """The store was told to forget or to bring back: what the last turn knew is outdated."""
        self._session_messages = None

    def close(self) -> None:
        """Let go of connections; the conversation stays where it is, in the store."""
        self._reviews.stop(CLOSE_SECONDS)
        self._patient.close()

    def commit_memory_session(self, history: list[Message]) -> None:
        """The conversation is over: let memory be made of what was not reviewed yet.

        Nobody waits for it: in a process that goes on it has a minute, one that ends takes
        it along. Where the end is known to be near, `reviews_at_end` is switched off.
        """
        if self._on_finalize is not None:
            self._on_finalize(history)
        if self.reviews_at_end and self._reviews.is_worth_it:
            read = ContextWindow(self._patient, self._compress).fitted(self.keeping.history())
            system = {"role": "system", "content": self._prompt}
            hearing = TurnHooks(self._announce, self._who(self._store.ids.new()))
            self._reviews.start(self._looking(hearing), [system, *read], self._patient.close)
