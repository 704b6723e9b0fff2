"""A look back, while nobody waits: what of the conversation is worth remembering.

The model reads the conversation once more exactly as it read it last, which its provider's
cache makes cheap, and one question behind it. It can do nothing but change its memory.
Nothing of it becomes a part of the conversation; what it costs is counted.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.context.compaction import OPENING
from hermes_agent.events import Failed, ToolFinished
from hermes_agent.messages import ModelRequest, answer_message, result_message
from hermes_agent.providers.completion import asked
from hermes_agent.toolbox import Surroundings
from hermes_agent.turn_control import Cancel
from hermes_core.isolate import Step, run_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.messages import Message, ToolCall
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.toolbox import Guard, Toolbox
    from hermes_agent.tools.base import Asks, ToolContext
    from hermes_agent.turn import Turn
    from hermes_agent.turn_hooks import TurnHooks

MEMORY: Final = "memory"
MAX_REQUESTS: Final = 8
MAX_SECONDS: Final = 60.0
MIN_TURNS_AT_END: Final = 4  # a conversation of which less was said ends without a review
MAX_NAMED: Final = 3
NAMED_CHARACTERS: Final = 60
TASK: Final = (
    "[System note] Review this conversation. Save with the memory tool what "
    "will matter in later ones: what the user likes, wants or corrected (target user), lasting "
    "facts about their work and machine (target memory). Leave out what is known already, what "
    "was only for today, and secrets; replace what is no longer true. If there is nothing, call "
    "nothing. Then answer with one word: done."
)
ONLY_MEMORY: Final = "Only the memory tool is available during a review."


class Looking(NamedTuple):
    """What a review works with."""

    keeping: ConversationStore
    patient: FallbackProvider
    toolbox: Toolbox
    hearing: TurnHooks
    asks: Asks  # nobody: nothing is approved
    guard: Guard
    cwd: Path


def turns_in(messages: list[Message]) -> int:
    """How many times the user spoke; a summary is not theirs."""
    said = (message.get("content") for message in messages if message.get("role") == "user")
    return sum(not str(content).startswith(OPENING) for content in said)


def is_due(before: int, after: int, every: int) -> bool:
    """Whether a review is due when the user's turns went from *before* to *after*."""
    return every > 0 and after // every > before // every


def _nothing() -> None:
    """Nothing is left to do."""


class Reviews:
    """The reviews of one conversation: one at a time, each in a thread that nobody waits for."""

    def __init__(self, every: int, tell: Callable[[str], object]) -> None:
        self._every = every  # turns of the user; 0: never
        self._tell = tell  # hears in one line what was saved, if anything was
        self._turns = 0  # that were seen here and not reviewed yet
        self._cancel = Cancel()
        self._thread: threading.Thread | None = None

    @property
    def is_worth_it(self) -> bool:
        """Whether enough was said since the last one for another at the end."""
        return self._every > 0 and self._turns >= MIN_TURNS_AT_END

    @property
    def is_running(self) -> bool:
        """Whether one is under way."""
        return self._thread is not None and self._thread.is_alive()

    def turn_is_over(self, turn: Turn, looking: Looking) -> None:
        """A turn has its answer; every few of them there is a review."""
        self._turns += 1
        before, after = turns_in(turn.messages[: turn.asked_at]), turns_in(turn.messages)
        if is_due(before, after, self._every):
            self.start(looking, turn.as_read())

    def start(
        self, looking: Looking, messages: list[Message], then: Callable[[], object] = _nothing
    ) -> None:
        """Begin one of *messages*, unless one is under way; *then* comes last."""
        if self.is_running or MEMORY not in looking.toolbox.names():
            return
        self._turns = 0
        self._cancel = cancel = Cancel()

        def work() -> None:
            limit = threading.Timer(MAX_SECONDS, cancel.request, ("it timed out",))
            limit.daemon = True
            limit.start()
            run_all(
                [
                    Step("review", lambda: self._look(looking, messages, cancel)),
                    Step("stop the review timer", limit.cancel),
                    Step("end a review", then),
                ]
            )

        self._thread = threading.Thread(target=work, name="hermes-review", daemon=True)
        self._thread.start()

    def _look(self, looking: Looking, messages: list[Message], cancel: Cancel) -> None:
        saved = review(looking, messages, cancel)
        if saved and not cancel.is_requested:
            self._tell(line(saved))

    def stop(self, seconds: float) -> None:
        """Cancel the one under way, and wait a moment for its end."""
        self._cancel.request("the conversation was closed")
        self.wait(seconds)

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the one under way; whether none is left."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.is_running


def review(looking: Looking, messages: list[Message], cancel: Cancel) -> list[str]:
    """Ask, let memory be changed; what was saved."""
    read = [*messages, {"role": "user", "content": TASK}]
    saved: list[str] = []
    for number in range(MAX_REQUESTS):
        request = ModelRequest(list(read), looking.toolbox.schemas())
        last = asked(looking.patient, request, cancel, looking.keeping)
        if isinstance(last, Failed) or not last.calls:
            break
        read.append(answer_message(last.text, last.calls))
        for call, result in _results(looking, last.calls, cancel, number):
            read.append(result_message(call, result))
            saved += _saved(call, result)
        if cancel.is_requested:
            break
    return saved


def _results(
    looking: Looking, calls: tuple[ToolCall, ...], cancel: Cancel, number: int
) -> list[tuple[ToolCall, str]]:
    name = f"review-{number}"

    def guard(tool: str, arguments: dict[str, Any], context: ToolContext) -> str | None:
        return looking.guard(tool, arguments, context) if tool == MEMORY else ONLY_MEMORY

    around = Surroundings(
        looking.keeping.session_id, name, looking.cwd, cancel, looking.asks, guard
    )
    watch = looking.hearing.watch(name)
    events = looking.toolbox.carry_out(calls, around, watch)
    return [(event.call, event.result) for event in events if isinstance(event, ToolFinished)]


def _saved(call: ToolCall, result: str) -> list[str]:
    """The entry that a call has put into memory, if it has."""
    try:
        arguments, answer = json.loads(call.arguments), json.loads(result)
    except ValueError:
        return []
    if call.name != MEMORY or answer.get("error") or arguments.get("action") == "read":
        return []
    if arguments.get("action") == "remove":
        return []
    return [str(arguments.get("text") or "").strip()]


def line(saved: list[str]) -> str:
    """What was saved, in one line."""
    shown = [_short(" ".join(entry.split())) for entry in saved[:MAX_NAMED]]
    more = len(saved) - len(shown)
    return f"Remembered: {'; '.join(shown)}" + (f"; and {more} more" if more else "")


def _short(text: str) -> str:
    return text if len(text) <= NAMED_CHARACTERS else f"{text[: NAMED_CHARACTERS - 1]}…"
