"""Access to one conversation in the store; everything is stored before it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hermes_agent.context.window import PreparedMessages, missing_results, repaired
from hermes_agent.messages import ANONYMOUS, UNFINISHED, PromptIdentity
from hermes_state.messages.rows import as_turn, history_version
from hermes_state.sessions import usage as token_counts
from hermes_state.sessions.rows import set_fact

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.messages import Message, ToolCall, Usage
    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.leases import Lease
    from hermes_state.engine.transaction import Tx
    from hermes_state.messages.drafts import Draft
    from hermes_state.messages.history import PromptFields
    from hermes_state.messages.rows import HistoryVersion
    from hermes_state.store import SessionDB

PROMPT_FACTS: Final = "_prompt_facts"  # in the configuration of a session: what its prompt tells


class NewPrompt(NamedTuple):
    """A user message to be stored."""

    content: Any
    identity: PromptIdentity = ANONYMOUS
    note: JsonObject | None = None  # to the model, stored beside the text of the user

    def message(self) -> Message:
        """The prompt as a message of the conversation."""
        message: Message = {"role": "user", "content": self.content}
        return message if self.note is None else {**message, "display_metadata": self.note}


class StartedTurn(NamedTuple):
    """The lease of a turn and the row of its prompt."""

    lease: Lease
    row_id: int


class ConversationStore:
    """One conversation in one store.

    The messages of the last turn are kept, so that the next turn need not read them again.
    """

    def __init__(self, store: SessionDB, session_id: str, source: str, **fields: Any) -> None:
        self._store = store
        self._model: str | None = None  # of the last request
        self.session_id = session_id
        self._source = source
        self._fields = fields
        self.prepared = PreparedMessages()
        self._messages: list[Message] | None = None  # kept after a complete turn
        self._version: HistoryVersion | None = None  # of the history at the end of that turn

    def begin(self, system_prompt: str = "", facts: JsonObject | None = None) -> bool:
        """Create or reopen the session row; whether it is new. *facts* are those in the prompt.

        The row is created with the first prompt, so that unused sessions leave no rows.
        """
        row = self._store.sessions.find(self.session_id)
        if row is None:
            fields = {**self._fields, "system_prompt": system_prompt or None}
            if facts:
                fields["model_config"] = {**fields.get("model_config", {}), PROMPT_FACTS: facts}
            self._store.sessions.create_session(self.session_id, self._source, **fields)
            return True
        self._store.sessions.reopen_session(self.session_id)
        if system_prompt and not row.system_prompt:  # a chat's row exists before its prompt
            self.set_prompt(system_prompt, facts or {})
        return False

    def set_prompt(self, system_prompt: str, facts: JsonObject) -> None:
        """Replace the stored system prompt and the facts in it."""
        self._store.sessions.update_system_prompt(self.session_id, system_prompt)
        self._store.sessions.update_session_meta(self.session_id, {PROMPT_FACTS: facts})

    @property
    def keeps_notes(self) -> bool:
        """Whether notes can be stored; files of old releases of hermes-agent lack the column."""
        return "display_metadata" in self._store.engine.columns.messages

    @property
    def kept_messages(self) -> list[Message]:
        """The messages of the last turn, if they are kept."""
        return self._messages or []

    def start_turn(self, holder: str, prompt: NewPrompt) -> StartedTurn | None:
        """Acquire the lease and store the prompt in one transaction.

        None if the kept messages are not the current ones: then the history is to be read.
        """
        expected = self._version
        if self._messages is None or expected is None:
            return None
        uid, aliases, platform_message_id, _ = prompt.identity
        fields = cast("PromptFields", {**prompt.message(), "aliases": aliases})
        if uid is not None:
            fields["uid"] = uid
        if platform_message_id is not None:
            fields["platform_message_id"] = platform_message_id
        started = self._store.messages.start_turn(self.session_id, holder, fields, expected)
        if started is None:
            self.forget_messages()
            return None
        return StartedTurn(*started)

    def take_messages(self) -> list[Message]:
        """The kept messages; they are kept again when the turn is complete."""
        messages = self._messages or []
        self.forget_messages()
        return messages

    def keep_messages(self, messages: list[Message]) -> None:
        """Keep the messages of a complete turn whose version was read with the answer."""
        self._messages = messages if self._version is not None else None

    def forget_messages(self) -> None:
        """Read the history again in the next turn."""
        self._messages = self._version = None

    def read_version(self, tx: Tx) -> None:
        """Remember the version of the history, in the transaction that stores the answer."""
        self._version = history_version(tx, self.session_id)

    def read_history(self) -> list[Message]:
        """The messages for the model; nothing is stored."""
        return repaired(self._store.messages.get_messages_as_conversation(self.session_id))

    def history(self) -> list[Message]:
        """The messages for the next request; unanswered tool calls get a stored result."""
        self.forget_messages()
        messages = self._store.messages.get_messages_as_conversation(self.session_id)
        for result in missing_results(messages):
            self._store.messages.append_message(
                self.session_id,
                "tool",
                result["content"],
                tool_name=result["tool_name"],
                tool_call_id=result["tool_call_id"],
            )
            messages.append(result)
        return repaired(messages)

    def everything(self) -> list[Message]:
        """All messages, with those that were compacted and without those that were undone."""
        return [as_turn(row) for row in self._store.messages.shown(self.session_id)]

    def drop_unfinished(self) -> None:
        """Undo an incomplete answer; the history keeps it."""
        rows = self._store.messages.rows(self.session_id)
        last = rows[-1] if rows else None
        if last and last.role == "assistant" and last.finish_reason in UNFINISHED:
            self._store.edits.rewind(self.session_id, last.id)

    def acquire_turn(self, holder: str) -> Lease:
        """Acquire the turn's lease; LeaseTakenError while another process holds it."""
        return self._store.leases.acquire(self.session_id, holder)

    def renew_turn(self, lease: Lease) -> None:
        """Renew the turn's lease."""
        self._store.leases.renew(lease)

    def release_turn(self, lease: Lease) -> None:
        """Release the turn's lease."""
        self._store.leases.release(lease)

    def add_prompt(self, prompt: NewPrompt, lease: Lease, finish_reason: str | None = None) -> int:
        """Store a user message; HOOK_FEEDBACK as *finish_reason* marks one of a hook."""
        uid, aliases, platform_message_id, _ = prompt.identity
        return self._store.messages.append_message(
            self.session_id,
            "user",
            prompt.content,
            lease=lease,
            uid=uid,
            aliases=aliases,
            platform_message_id=platform_message_id,
            finish_reason=finish_reason,
            display_metadata=prompt.note,
        )

    def draft(self, lease: Lease) -> Draft:
        """Start a draft for a streamed reply."""
        return self._store.messages.draft(self.session_id, lease=lease)

    def add_result(self, call: ToolCall, content: str, lease: Lease) -> int:
        """Store a tool result."""
        return self._store.messages.append_message(
            self.session_id,
            "tool",
            content,
            tool_name=call.name,
            tool_call_id=call.id,
            lease=lease,
        )

    def replace_active(self, messages: list[Message]) -> int:
        """Replace the active messages; the others stay in the history."""
        return self._store.edits.archive_and_compact(self.session_id, messages)

    def usage_change(self, usage: Usage, model: str, **billing: Any) -> Callable[[Tx], None]:
        """The change that adds the tokens of a request, including failed ones."""
        is_other = self._model not in (None, model)  # another one answers instead
        self._model = model
        counts = {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": usage.reasoning,
            "api_call_count": 1,
            "model": model,
            **billing,
        }

        def record(tx: Tx) -> None:
            token_counts.update(tx, self.session_id, counts, absolute=False)
            if is_other:
                set_fact(tx, self.session_id, "model", model)

        return record

    def write(self, change: Callable[[Tx], object]) -> None:
        """Make a change in a transaction of its own."""
        self._store.engine.write(change)
