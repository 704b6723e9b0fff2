"""What the tools return; the output schemas that other agents see are made from it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


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
