"""The tools that other agents can call, with the rights of their caller."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from gateway.mcp_server.models import (
    AttachmentItem,
    ChannelItem,
    ConversationFacts,
    ConversationItem,
    ConversationMessages,
    GivenAnswer,
    MatchingMessage,
    MessageItem,
    QuestionItem,
    SentMessage,
)
from gateway.outbound import direct_send
from gateway.platforms.names import Platform
from gateway.process.config_loader import config_of_home
from hermes_core.errors import UsageError
from hermes_core.media_store import is_reference, url_of
from hermes_core.messages import plain_text
from hermes_core.roles import Right
from hermes_state.files import media_of

if TYPE_CHECKING:
    from gateway.mcp_server.callers import McpCaller
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import ListedSession
    from hermes_state.store import SessionDB

MAX_RESULTS: Final = 200
MAX_TEXT_CHARS: Final = 20_000
MAX_ATTACHMENT_BYTES: Final = 10 * 1024 * 1024
DECISIONS: Final = ("once", "session", "always", "deny")


class McpTools:
    """The tools of a store; each method gets its caller."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def conversations_list(
        self, caller: McpCaller, limit: int, offset: int, source: str
    ) -> list[ConversationItem]:
        """Conversations, most recently used first."""
        first, count = max(offset, 0), bounded(limit)
        if caller.sees_all:
            rows = self._db.lists.sessions(
                source=source or None, limit=count, offset=first, order_by_last_active=True
            )
        else:
            caller.require(Right.CHAT_HISTORY, "The history")
            api = Platform.API_SERVER.value
            every = self._db.lists.sessions(source=api, limit=-1, order_by_last_active=True)
            own = [row for row in every if caller.may_see(row.session) and source in {"", api}]
            rows = own[first : first + count]
        return [_listed(row) for row in rows]

    def conversations_search(
        self, caller: McpCaller, query: str, limit: int
    ) -> list[MatchingMessage]:
        """Messages that match, newest first."""
        if not caller.sees_all:
            caller.require(Right.CHAT_HISTORY, "The history")
        hits = self._db.search.find(query, limit=bounded(limit) if caller.sees_all else 5_000)
        allowed = [hit for hit in hits if self.may_see(caller, hit.session_id)]
        return [
            MatchingMessage(
                conversation=hit.session_id,
                message=hit.id,
                role=hit.role,
                at=hit.timestamp,
                text=hit.snippet_text,
            )
            for hit in allowed[: bounded(limit)]
        ]

    def may_see(self, caller: McpCaller, session_id: str) -> bool:
        """Whether a caller may read a conversation."""
        return caller.sees_all or caller.may_see(self._db.sessions.find(session_id))

    def conversation_get(self, caller: McpCaller, conversation: str) -> ConversationFacts:
        """The facts about a conversation."""
        row = caller.require_session(self._db, conversation)
        return ConversationFacts(
            id=row.id,
            title=row.title,
            source=row.source,
            chat=row.chat_id,
            model=row.model,
            message_count=row.message_count,
            started_at=row.started_at,
            ended_at=row.ended_at,
            end_reason=row.end_reason,
            parent=row.parent_session_id,
        )

    def messages_read(
        self, caller: McpCaller, conversation: str, after: int, limit: int
    ) -> ConversationMessages:
        """The messages of a conversation."""
        row = caller.require_session(self._db, conversation)
        shown = self._db.messages.shown(row.id, after_id=after)
        rows = list(itertools.islice(shown, bounded(limit)))
        last = rows[-1].id if len(rows) == bounded(limit) else None
        messages = [described(item) for item in rows]
        return ConversationMessages(
            conversation=row.id, title=row.title, messages=messages, next=last
        )

    def attachments_fetch(
        self, caller: McpCaller, conversation: str, message: int
    ) -> list[AttachmentItem]:
        """The files of a message, as `data:` URLs."""
        row = caller.require_session(self._db, conversation)
        found = [item for item in self._db.messages.rows(row.id, include_inactive=True)
                 if item.id == message]  # fmt: skip
        if not found:
            raise UsageError(f"conversation {row.id} has no message {message}")
        media = media_of(self._db)
        results: list[AttachmentItem] = []
        for reference in references(found[0]):
            size = media.size_of(reference)
            is_small = size <= MAX_ATTACHMENT_BYTES
            data = media.as_data(reference) if is_small else None
            results.append(AttachmentItem(attachment=reference, bytes=size, data=data))
        return results

    def channels_list(self, caller: McpCaller) -> list[ChannelItem]:
        """The known chats, most recently used first."""
        caller.require(Right.ALL_HISTORY, "The list of chats")
        return [
            ChannelItem(
                channel=channel.address,
                name=channel.name,
                kind=channel.kind,
                conversation=channel.session_id,
                used=channel.last_active,
            )
            for channel in direct_send.list_channels(self._db, config_of_home())
        ]

    def messages_send(self, caller: McpCaller, channel: str, text: str, key: str) -> SentMessage:
        """Send a text to a chat, through the outbox."""
        caller.require(Right.ADMINISTER, "Sending to chats")
        target = direct_send.find_channel(self._db, config_of_home(), channel)
        outbox_ids = direct_send.send(self._db, target, text, key)
        return SentMessage(channel=target.address, outbox_ids=outbox_ids)

    def permissions_list_open(self, caller: McpCaller) -> list[QuestionItem]:
        """The questions of running turns that wait for an answer."""
        caller.require(Right.APPROVE, "The list of questions")
        return [
            QuestionItem(
                question=question.question_id,
                kind=question.kind,
                conversation=question.session_id,
                text=question.text,
                choices=list(question.choices),
                asked_at=question.asked_at,
            )
            for question in self._db.open_questions.all()
        ]

    def permissions_respond(
        self, caller: McpCaller, question_id: str, decision: str, reason: str
    ) -> GivenAnswer:
        """Answer a question."""
        caller.require(Right.APPROVE, "Answering questions")
        waiting = {item.question_id: item for item in self._db.open_questions.all()}
        question = waiting.get(question_id)
        if question is None:
            raise UsageError(f"no open question has the ID {question_id!r}")
        text = decision
        if question.kind == "approval":
            if decision not in DECISIONS:
                raise UsageError(f"`decision` must be one of: {', '.join(DECISIONS)}")
            text = f"deny {reason}".strip() if decision == "deny" else decision
        if not self._db.open_questions.answer(question_id, text):
            raise UsageError(f"the question {question_id!r} was answered meanwhile")
        return GivenAnswer(question=question_id, answer=text)


def _listed(row: ListedSession) -> ConversationItem:
    return ConversationItem(
        id=row.id,
        title=row.session.title,
        preview=row.preview,
        source=row.session.source,
        model=row.session.model,
        message_count=row.session.message_count,
        started_at=row.session.started_at,
        last_active=row.last_active,
        ended_at=row.session.ended_at,
        end_reason=row.session.end_reason,
    )


def described(row: MessageRow) -> MessageItem:
    """A message as callers get it."""
    return MessageItem(
        message=row.id,
        role=row.role,
        at=row.timestamp,
        text=plain_text(row.content)[:MAX_TEXT_CHARS],
        tool=row.tool_name,
        attachments=len(references(row)),
    )


def references(row: MessageRow) -> list[str]:
    """The stored files in a message."""
    parts = row.content if isinstance(row.content, list) else []
    return [url_of(part) for part in parts if isinstance(part, dict) and is_reference(part)]


def bounded(limit: int) -> int:
    """A number of results within the limits."""
    return max(1, min(limit, MAX_RESULTS))
