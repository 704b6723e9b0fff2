"""The conversation in the store: everything is there before anybody sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.repair import acceptable, dangling

if TYPE_CHECKING:
    from hermes_agent.messages import Message, ToolCall, Usage
    from hermes_state import SessionDB
    from hermes_state.drafts import Draft
    from hermes_state.leases import Lease


class Keeping:
    """One conversation in one store."""

    def __init__(self, store: SessionDB, session_id: str, source: str, **facts: Any) -> None:
        self._store = store
        self.session_id = session_id
        self._source = source
        self._facts = facts

    def begin(self) -> bool:
        """Make sure that the row is there and open; whether it is new.

        There is no row before the first prompt, so that looking around leaves no ghosts.
        """
        row = self._store.get_session(self.session_id)
        if row is None:
            self._store.create_session(self.session_id, self._source, **self._facts)
            return True
        if row.get("ended_at") is not None:
            self._store.reopen_session(self.session_id)
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
