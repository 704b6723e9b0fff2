"""The tools that other agents can call, with the rights of their caller."""

from __future__ import annotations

import hmac
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pydantic import BaseModel

from gateway.outbound import direct_send
from gateway.platforms.names import API_KEY_USER, Platform
from gateway.process.config_loader import config_of_home
from hermes_conversation import history_answers, known_fixes, origin_report
from hermes_conversation.history_scope import ConversationHistory
from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.media_store import is_reference, url_of
from hermes_core.messages import plain_text
from hermes_core.roles import Right, Role, may, parse_role
from hermes_state.files import media_of
from hermes_state.search.repository import SearchOptions

if TYPE_CHECKING:
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import ListedSession, SessionRow
    from hermes_state.store import SessionDB


class ConversationItem(BaseModel):
    """A conversation in a list."""

    id: str
    title: str | None
    preview: str
    source: str
    model: str | None
    message_count: int
    started_at: float
    last_active: float
    ended_at: float | None
    end_reason: str | None


class ConversationFacts(BaseModel):
    """One conversation."""

    id: str
    title: str | None
    source: str
    chat: str | None
    model: str | None
    message_count: int
    started_at: float
    ended_at: float | None
    end_reason: str | None
    parent: str | None


class MatchingMessage(BaseModel):
    """A message that a search has found."""

    conversation: str
    message: int
    role: str
    at: float
    text: str


class WritingTurn(BaseModel):
    """The turn of an agent that wrote a line."""

    session_id: str
    title: str | None
    agent: str
    at: float
    message_id: int
    prompt_message_id: int | None
    prompt: str


class LineCommit(BaseModel):
    """The commit that a line came with."""

    id: str
    at: float
    author: str
    summary: str


class LineAuthor(BaseModel):
    """Who wrote a line: an agent in a conversation, a person, or unknown."""

    first: int
    last: int
    lines: list[str]
    written_by: Literal["agent", "person", "unknown"]
    conversation: WritingTurn | None
    commit: LineCommit | None


class CitedSentence(BaseModel):
    """A sentence, and the numbers of its quotations, from 1."""

    text: str
    sources: list[int]


class QuotedMessage(BaseModel):
    """A message that may answer the question; `context` includes the messages beside it."""

    session_id: str
    title: str
    message_id: int
    role: str
    at: float
    text: str
    context: str


class UsedWord(BaseModel):
    """A word that occurs nowhere, and the one that was searched for instead."""

    written: str
    used: str


class CitedAnswer(BaseModel):
    """An answer from the history; without sentences if the quotations do not contain it."""

    question: str
    sentences: list[CitedSentence]
    quotations: list[QuotedMessage]
    corrections: list[UsedWord]
    left_out: int
    note: str
    failure: str
    model: str


class FixItem(BaseModel):
    """An error, and what worked after it the last time."""

    error: str
    command: str
    folder: str
    fix: str
    times: int
    at: float
    session_id: str
    title: str
    message_id: int
    fix_message_id: int


class MessageItem(BaseModel):
    """A message; `attachments` is the number of its files."""

    message: int
    role: str
    at: float
    text: str
    tool: str | None
    attachments: int


class ConversationMessages(BaseModel):
    """Messages of a conversation; `next` is the last ID if there may be more."""

    conversation: str
    title: str | None
    messages: list[MessageItem]
    next: int | None


class AttachmentItem(BaseModel):
    """A stored file; `data` is a `data:` URL, or null if the file is missing or too large."""

    attachment: str
    bytes: int
    data: str | None


class ChannelItem(BaseModel):
    """A chat that messages can be sent to."""

    channel: str
    name: str
    kind: str
    conversation: str | None
    used: float | None


class SentMessage(BaseModel):
    """A text that waits in the outbox."""

    channel: str
    outbox_ids: list[int]


class QuestionItem(BaseModel):
    """A question of a running turn."""

    question: str
    kind: str
    conversation: str
    text: str
    choices: list[str]
    asked_at: float


class GivenAnswer(BaseModel):
    """The answer to a question."""

    question: str
    answer: str


class MessageNews(MessageItem):
    """A new message."""

    kind: Literal["message"] = "message"
    conversation: str


class QuestionNews(BaseModel):
    """A new question."""

    kind: Literal["question"] = "question"
    question: str
    conversation: str
    text: str


class EventPage(BaseModel):
    """Events, and the cursor for the next ones."""

    events: list[MessageNews | QuestionNews]
    cursor: str


MIN_OWNER_KEY_CHARS: Final = 16


class McpCaller(NamedTuple):
    """The role of a caller; others than the owner see only conversations of their own key."""

    role: Role
    chat_prefix: str = ""

    def require(self, right: Right, what: str) -> None:
        """UsageError if the caller does not have a right."""
        if not may(self.role, right):
            raise UsageError(f"{what} is not available to a key with the role {self.role}.")

    @property
    def sees_all(self) -> bool:
        """Whether the caller may read all conversations."""
        return may(self.role, Right.ALL_HISTORY)

    def may_see(self, row: SessionRow | None) -> bool:
        """Whether the caller may read a conversation."""
        if row is None or self.sees_all:
            return row is not None
        is_own = row.source == Platform.API_SERVER.value and bool(self.chat_prefix)
        has_right = may(self.role, Right.CHAT_HISTORY)
        return has_right and is_own and (row.chat_id or "").startswith(self.chat_prefix)

    def require_session(self, db: SessionDB, text: str) -> SessionRow:
        """The conversation with an ID, title or prefix; one of others does not exist."""
        row = db.sessions.find(db.lookup.resolve(text)) if self.sees_all else db.sessions.find(text)
        if row is None or not self.may_see(row):
            raise SessionNotFoundError(f"no conversation matches {text!r}")
        return row


OWNER: Final = McpCaller(Role.OWNER)


def find_caller(db: SessionDB, authorization: str, owner_key: str) -> McpCaller | None:
    """The caller of an `Authorization` header; None if it has no valid token."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return None
    is_long = len(owner_key) >= MIN_OWNER_KEY_CHARS
    if is_long and hmac.compare_digest(token.encode(), owner_key.encode()):
        return OWNER
    found = db.people.find_api_key(token)
    if found is None:
        return None
    role = parse_role(found.role) or Role.GUEST
    prefix = "" if role is Role.OWNER else f"{API_KEY_USER.format(name=found.name)}/"
    return McpCaller(role, prefix)


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
            is_own_source = source in {"", Platform.API_SERVER.value}
            rows = self._own(caller)[first : first + count] if is_own_source else []
        return [_listed(row) for row in rows]

    def _own(self, caller: McpCaller) -> list[ListedSession]:
        """The conversations of a caller who may not see all."""
        caller.require(Right.CHAT_HISTORY, "The history")
        api = Platform.API_SERVER.value
        every = self._db.lists.sessions(source=api, limit=-1, order_by_last_active=True)
        return [row for row in every if caller.may_see(row.session)]

    def _visible_ids(self, caller: McpCaller) -> frozenset[str] | None:
        """The sessions that a caller may search; None for all."""
        return None if caller.sees_all else frozenset(row.id for row in self._own(caller))

    def history_ask(self, caller: McpCaller, question: str, *, with_model: bool) -> CitedAnswer:
        """An answer from the history with its quotations."""
        allowed = ConversationHistory(self._db, self._visible_ids(caller))
        if with_model:
            caller.require(Right.CONVERSE, "A model")
            answer = history_answers.ask(allowed, question)
        else:
            answer = history_answers.quote(allowed, question, history_answers.MAX_BUDGET_TOKENS)
        return CitedAnswer.model_validate(history_answers.as_fields(answer))

    def why_line(self, caller: McpCaller, file: str, line: int) -> LineAuthor:
        """The conversation that wrote a line of a file on this machine."""
        caller.require(Right.ALL_FILES, "The files of this machine")
        self._db.calls.fill(origin_report.MAX_FILL_SECONDS)
        place = origin_report.Place(origin_report.readable_file(file, Path("/")), line, line)
        report = origin_report.report_of(self._db, place)
        return LineAuthor.model_validate(report.ranges[0].as_fields())

    def history_fixes(self, caller: McpCaller, error: str, limit: int) -> list[FixItem]:
        """What worked when a command failed with an error before, latest first."""
        self._db.calls.fill(origin_report.MAX_FILL_SECONDS)
        allowed = ConversationHistory(self._db, self._visible_ids(caller))
        found = known_fixes.find_fixes(self._db, allowed, error, bounded(limit))
        return [FixItem.model_validate(known_fixes.as_fields(fix)) for fix in found]

    def conversations_search(
        self, caller: McpCaller, query: str, limit: int
    ) -> list[MatchingMessage]:
        """Messages that answer the query, best first; one or two words: newest first."""
        options = SearchOptions(allowed_ids=self._visible_ids(caller), limit=bounded(limit))
        hits = self._db.search.answer(query, options).hits
        return [
            MatchingMessage(
                conversation=hit.session_id,
                message=hit.id,
                role=hit.role,
                at=hit.timestamp,
                text=hit.snippet_text,
            )
            for hit in hits
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
