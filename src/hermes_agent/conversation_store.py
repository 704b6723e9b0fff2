"""The conversation in the store: everything is there before anybody sees it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.context.repair import acceptable, dangling

if TYPE_CHECKING:
    from hermes_agent.messages import Message, ToolCall, Usage
    from hermes_state import SessionDB
    from hermes_state.delivery.leases import Lease
    from hermes_state.messages.drafts import Draft

# How an answer that was not given to its end is marked.
UNFINISHED: Final = frozenset({"interrupted", "error", "crashed"})


class ConversationStore:
    """One conversation in one store."""

    def __init__(self, store: SessionDB, session_id: str, source: str, **facts: Any) -> None:
        self._store = store
        self.session_id = session_id
        self._source = source
        self._facts = facts

    def begin(self, system_prompt: str = "") -> bool:
        """Make sure that the row is there and open; whether it is new.

        There is no row before the first prompt, so that looking around leaves no ghosts.
        """
        row = self._store.get_session(self.session_id)
        if row is None:
            facts = {**self._facts, "system_prompt": system_prompt or None}
            self._store.create_session(self.session_id, self._source, **facts)
            return True
        if row.get("ended_at") is not None:
            self._store.reopen_session(self.session_id)
        if system_prompt and not row.get("system_prompt"):  # a chat's row is there before it
            self._store.update_system_prompt(self.session_id, system_prompt)
        return False

    def history(self) -> list[Message]:
        """The conversation as the model is to read it; cut-off calls are closed on disk."""
        messages = self._store.get_messages_as_conversation(self.session_id)
        for result in dangling(messages):
            self._store.append_message(
                self.session_id,
                "tool",
                result["content"],
                tool_name=result["tool_name"],
                tool_call_id=result["tool_call_id"],
            )
            messages.append(result)
        return acceptable(messages)

    def drop_unfinished(self) -> None:
        """Take back the beginning of an answer that broke off; the history keeps it."""
        rows = self._store.get_messages(self.session_id)
        last = rows[-1] if rows else None
        if last and last["role"] == "assistant" and last["finish_reason"] in UNFINISHED:
            self._store.rewind_to_message(self.session_id, last["id"])

    def take_turn(self, holder: str) -> Lease:
        """The right to run a turn; LeaseTakenError while somebody else has it."""
        return self._store.acquire_turn(self.session_id, holder)

    def renew_turn(self, lease: Lease) -> None:
        """Say that the turn still runs."""
        self._store.renew_turn(lease)

    def give_turn_back(self, lease: Lease) -> None:
        """The turn is over."""
        self._store.release_turn(lease)

    def say(self, content: Any, lease: Lease, **fields: Any) -> int:
        """Store what the user says."""
        return self._store.append_message(self.session_id, "user", content, lease=lease, **fields)

    def draft(self, lease: Lease) -> Draft:
        """A reply that is about to stream."""
        return self._store.draft(self.session_id, lease=lease)

    def result(self, call: ToolCall, content: str, lease: Lease) -> int:
        """Store a tool's answer."""
        return self._store.append_message(
            self.session_id,
            "tool",
            content,
            tool_name=call.name,
            tool_call_id=call.id,
            lease=lease,
        )

    def make_sure_of(self, messages: list[Message]) -> None:
        """Store what is not stored yet, once each.

        The store knows a message by its row, and where it names none by its content. What
        was taken back or summed up is stored, too, and does not come back.
        """
        stored = self._store.get_messages_as_conversation(self.session_id, include_inactive=True)
        missing = _missing(messages, stored)
        if missing:
            self._store.append_messages_batch(self.session_id, missing)

    def go_on_with(self, messages: list[Message]) -> int:
        """Let the model read these from now on; the rest stays in the history."""
        return self._store.archive_and_compact(self.session_id, messages)

    def spend(self, usage: Usage, model: str, **billing: Any) -> None:
        """Count the tokens of a request, also of one that failed."""
        self._store.update_token_counts(
            self.session_id,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            reasoning_tokens=usage.reasoning,
            api_call_count=1,
            model=model,
            **billing,
        )


def _missing(messages: list[Message], stored: list[Message]) -> list[Message]:
    """What is not stored yet; something said twice is there when it is stored twice."""
    rows = {one["hermes_uid"]: one for one in stored}
    named = {name for message in messages if _is_of(message, rows.get(name := _row_name(message)))}
    unclaimed = Counter(_key(row) for name, row in rows.items() if name not in named)
    missing = []
    for message in messages:
        key = _key(message)
        if _row_name(message) in named:
            continue
        if unclaimed[key]:
            unclaimed[key] -= 1
        else:
            missing.append(message)
    return missing


def _row_name(message: Message) -> str:
    """The row that a message says it was read from, as the store names it."""
    row_id = message.get("id")
    return str(message.get("hermes_uid")) if row_id is None else f"row-{row_id}"


def _is_of(message: Message, row: Message | None) -> bool:
    """Whether it is this row; a front end may have left out which call a result belongs to."""
    return row is not None and _key(message)[:2] == _key(row)[:2]


def _key(message: Message) -> tuple[str, str, str]:
    return (
        str(message.get("role")),
        str(message.get("content") or ""),
        str(message.get("tool_call_id") or ""),
    )
