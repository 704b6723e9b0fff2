"""Runs the agent turn of an inbox message: exactly once, with a live reply.

A user message is stored under a uid made of its inbox ID. When a message is handled again after
a crash, its stored turn is found by this uid and continued, or its finished reply is sent.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import logging
import os
import stat
import threading
import time
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.inbound import prompt_format
from gateway.inbound.budgets import BudgetExceededError, usage_of, user_key
from gateway.inbound.prompt_format import INVISIBLE_CATEGORIES, format_message
from gateway.platforms.names import Platform
from hermes_agent import events
from hermes_agent.events import FailureKind, ToolFinished, ToolStarted, find_problem, with_notice
from hermes_agent.messages import UNFINISHED, PromptIdentity
from hermes_agent.toolbox import STOP_SECONDS
from hermes_agent.turn_control import LONGEST_TOOL_SECONDS, MAX_CHECK_SECONDS
from hermes_core.errors import HermesError, LeaseTakenError, NoModelError, StoreError, UsageError
from hermes_core.media_store import REFERENCE_SCHEME, StoredFile
from hermes_core.paths import FILE_MODE, FOLDER_MODE, workspaces_path
from hermes_core.roles import Right, may
from hermes_state.files import media_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.inbound.budgets import Budgets, UsageLimits
    from gateway.inbound.questions import ChatQuestions
    from gateway.outbound.live_reply import LiveReplies, ReplyBuffer
    from gateway.platforms.base import MessageEvent
    from gateway.routing.conversation_cache import ConversationCache
    from gateway.routing.sources import SessionEntry, SessionSource
    from hermes_agent.events import AnswerProblem, Event
    from hermes_agent.messages import Usage
    from hermes_agent.turn import AnswerHook
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.transcription import Transcriber
    from hermes_state.delivery.rows import IncomingMessage, StoredFailure
    from hermes_state.engine.transaction import Tx
    from hermes_state.messages.rows import MessageRow
    from hermes_state.store import SessionDB

    Deliver = Callable[["TurnReply", str | None], Callable[[Tx], object]]
    from collections.abc import Iterator


log = logging.getLogger(__name__)

ATTACHMENT_FOLDER: Final = "attachments"  # in a workspace of Hermes
CHOSEN_ATTACHMENT_FOLDER: Final = ".hermes-attachments"  # in a folder that the owner has chosen
GIT_IGNORE: Final = ".gitignore"
OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
READ_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_NAME_CHARS: Final = 80
MAX_EXTENSION_CHARS: Final = 10
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class ReadAttachments(NamedTuple):
    """The attachments of one message."""

    notes: list[str]  # lines for the model
    images: list[str]  # references to stored files


def read_attachments(
    event: MessageEvent, transcribe: Transcriber | None, workspace: Path | None = None
) -> ReadAttachments:
    """Make the files of a message readable for a model; for its tools by a copy in *workspace*."""
    attachments = ReadAttachments([], [])
    for file in _files_of(event):
        if file.mime in IMAGE_TYPES:
            parent, name = file.path.parent.name, file.path.name
            attachments.images.append(f"{REFERENCE_SCHEME}{parent}/{name}")
            if file.name:
                attachments.notes.append(f"[Attached image: {file.name}]")
        elif file.mime.startswith("audio/"):
            attachments.notes.append(_transcript(file, transcribe, workspace))
        else:
            attachments.notes.append(f"[Attached file: {_copy(file, workspace)} ({file.mime})]")
    return attachments


def _files_of(event: MessageEvent) -> Iterator[StoredFile]:
    """The stored files of a message, with names that are safe in a prompt and in a folder."""
    names = itertools.chain(event.media_names, itertools.repeat(""))
    for path, mime, name in zip(event.media_urls, event.media_types, names, strict=False):
        yield StoredFile(Path(path), mime, safe_name(name))


def safe_name(name: str) -> str:
    """A file name without folders, invisible characters, brackets and leading dots."""
    last = name.replace("\\", "/").rpartition("/")[2]
    visible = "".join(
        " " if unicodedata.category(item) in INVISIBLE_CATEGORIES or item in "[]" else item
        for item in last
    )
    stem, dot, extension = " ".join(visible.split()).lstrip(". ").rpartition(".")
    if not dot:
        return extension[:MAX_NAME_CHARS]
    return f"{stem[:MAX_NAME_CHARS]}.{extension[:MAX_EXTENSION_CHARS]}"


def _copy(file: StoredFile, workspace: Path | None) -> str:
    """Copy a stored file into a workspace; its path there.

    People write to their workspaces: no symbolic link there is followed.
    """
    stored, name = file.path, file.name or file.path.name
    if workspace is None:  # the tools of this conversation open no files
        return name
    is_chosen = not workspace.is_relative_to(workspaces_path())
    folder = CHOSEN_ATTACHMENT_FOLDER if is_chosen else ATTACHMENT_FOLDER
    try:
        with _opened_folder(workspace, folder) as handle:
            if is_chosen:
                _write_file(handle, GIT_IGNORE, b"*\n")
            name = _write_new(handle, name, stored.read_bytes())
    except OSError as error:
        log.warning("attachment not copied to %s: %s", workspace / folder, error)
        return f"{name}, not copied to the working folder: {error.strerror}"
    return f"{folder}/{name}"


@contextlib.contextmanager
def _opened_folder(workspace: Path, name: str) -> Iterator[int]:
    """A folder in a workspace, created if it is missing; OSError if it is a link."""
    parent = os.open(workspace, OPEN_FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=parent)
        handle = os.open(name, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_new(folder: int, name: str, data: bytes) -> str:
    """Write a file unless it is there; its name, with a number if another file has that name."""
    path = PurePath(name)
    numbered = (f"{path.stem}-{number}{path.suffix}" for number in itertools.count(2))
    for candidate in itertools.chain([name], numbered):
        try:
            if _has_content(folder, candidate, data):
                return candidate
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ELOOP}:
                raise
            _write_file(folder, candidate, data)
            return candidate
    raise AssertionError("unreachable: the numbers do not end")


def _has_content(folder: int, name: str, data: bytes) -> bool:
    """Whether a file has this content; OSError if there is none or it is a link."""
    handle = os.open(name, READ_FILE, dir_fd=folder)
    try:
        facts = os.fstat(handle)
        is_file = stat.S_ISREG(facts.st_mode) and facts.st_size == len(data)
        with os.fdopen(os.dup(handle), "rb") if is_file else io.BytesIO() as file:
            return is_file and file.read() == data
    finally:
        os.close(handle)


def _write_file(folder: int, name: str, data: bytes) -> None:
    """Write a file; a link of this name is replaced."""
    temporary = f".{os.urandom(8).hex()}.tmp"
    with os.fdopen(os.open(temporary, CREATE_FILE, FILE_MODE, dir_fd=folder), "wb") as file:
        file.write(data)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _transcript(file: StoredFile, transcribe: Transcriber | None, workspace: Path | None) -> str:
    reason = "transcription is not configured"
    if transcribe is not None:
        try:
            return transcribe(file.path)
        except UsageError as error:
            log.warning("voice message transcription failed: %s", error)
            reason = f"transcription failed ({error})"
    return f"[Attached voice message, {reason}: {_copy(file, workspace)} ({file.mime})]"


class TurnTimes(NamedTuple):
    """How long the running turns take."""

    running: int = 0
    oldest_seconds: float = 0.0  # since the start of the longest
    silent_seconds: float = 0.0  # the longest time without progress
    hung: int = 0  # turns without progress beyond their deadline


@dataclass(slots=True)
class _Turn:
    started_at: float
    progress_at: float
    running_tools: int = 0


class RunningTurns:
    """The running turns by inbox ID; used by several threads."""

    def __init__(self, idle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_seconds = idle_seconds  # 0 if turns have no deadline
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[int, _Turn] = {}

    def start(self, inbox_id: int) -> None:
        """Note the start of a turn."""
        with self._lock:
            self._turns[inbox_id] = _Turn(self._clock(), self._clock())

    def progress(self, inbox_id: int, event: Event) -> None:
        """Note progress; called by the turn's own thread."""
        turn = self._turns.get(inbox_id)
        if turn is not None:
            turn.progress_at = self._clock()
            turn.running_tools += isinstance(event, ToolStarted)
            turn.running_tools -= isinstance(event, ToolFinished)

    def end(self, inbox_id: int) -> None:
        """Note the end of a turn."""
        with self._lock:
            self._turns.pop(inbox_id, None)

    def times(self) -> TurnTimes:
        """How long the turns take now."""
        now = self._clock()
        with self._lock:
            turns = list(self._turns.values())
            hung = sum(self._is_hung(turn, now) for turn in turns)
        if not turns:
            return TurnTimes()
        return TurnTimes(
            len(turns),
            now - min(turn.started_at for turn in turns),
            max(now - turn.progress_at for turn in turns),
            hung,
        )

    def _is_hung(self, turn: _Turn, now: float) -> bool:
        """Whether a turn should have been ended by its deadline."""
        limit = self._idle_seconds + MAX_CHECK_SECONDS + STOP_SECONDS
        if turn.running_tools:
            limit += LONGEST_TOOL_SECONDS
        return self._idle_seconds > 0 and now - turn.progress_at > limit


LEASE_RETRY_SECONDS: Final = 1.0
# Kinds of failures besides those of a provider.
BUDGET_FAILURE: Final = "budget"
NO_MODEL_FAILURE: Final = "no_model"
INTERNAL_FAILURE: Final = "internal"
GONE_FAILURE: Final = "gone"


class TurnReply(NamedTuple):
    """The reply of a turn, and what a program wants to know about it."""

    text: str
    usage: Usage | None = None
    failure: StoredFailure | None = None
    problem: AnswerProblem | None = None  # of the answer; the text describes it

    @classmethod
    def of(cls, last: events.TurnFinished) -> TurnReply:
        """The reply of a turn that has ended with an answer."""
        return cls(last.reply, last.usage, problem=last.problem)

    @classmethod
    def refused(cls, kind: str, text: str, retry_after: float | None = None) -> TurnReply:
        """The reply of a turn that did not run."""
        return cls(text, None, _failure(kind, text, retry_after))


def _failure(kind: str, message: str, retry_after: float | None = None) -> StoredFailure:
    failure: StoredFailure = {"kind": kind, "message": message}
    if retry_after is not None:
        failure["retry_after"] = retry_after
    return failure


class RetryLaterError(Exception):
    """The message cannot be answered now: the gateway stops, or another process has the turn."""


class TurnPrompt(NamedTuple):
    """The input of a turn and the inbox messages it comes from."""

    rows: list[IncomingMessage]  # the first is answered, the others are merged into it
    events: list[MessageEvent]
    text: str = ""  # replaces the text of the messages
    deliver: Deliver | None = None


class TurnRunner:
    """Runs turns; called from one thread per busy chat."""

    def __init__(
        self,
        db: SessionDB,
        conversations: ConversationCache,
        questions: ChatQuestions,
        live_replies: LiveReplies,
        limits: UsageLimits,
        budgets: Budgets,
        transcribe: Transcriber | None,
        on_progress: Callable[[int, Event], object] = lambda _inbox_id, _event: None,
    ) -> None:
        self._on_progress = on_progress  # gets the inbox ID and the event
        self._db = db
        self._conversations = conversations
        self._questions = questions
        self._live_replies = live_replies
        self._limits = limits
        self._budgets = budgets
        self._transcribe = transcribe
        self.is_stopping = False

    def is_stored(self, session_id: str, row: IncomingMessage) -> bool:
        """Whether an earlier attempt has stored the message in a conversation."""
        return self._stored_row(session_id, row) is not None

    def _stored_row(self, session_id: str, row: IncomingMessage) -> int | None:
        """The row of the message in a conversation; only this turn can store it from now on."""
        if session_id not in row.rows:
            uid = prompt_format.message_uid(row.inbox_id)
            row.rows[session_id] = self._db.messages.message_of(session_id, uid)
        return row.rows[session_id]

    def run(self, prompt: TurnPrompt, entry: SessionEntry, *, is_shared: bool) -> TurnReply:
        """Run the turn of a prompt; the reply."""
        source = prompt.events[0].source
        if source is not None and not self.is_stored(entry.session_id, prompt.rows[0]):
            refusal = self._refusal(source, prompt.rows[0].inbox_id)
            if refusal is not None:
                return refusal
        requester = source.user_id if source is not None else None
        self._questions.start_turn(entry.session_key, requester or "")
        try:
            conversation = self._conversations.acquire(
                entry, source, prompt.events[-1].instructions
            )
            if source is None or not any(self._budgets.limits):
                return self._run(prompt, conversation, is_shared=is_shared)
            before = usage_of(self._db, conversation.session_id)
            reply = self._run(prompt, conversation, is_shared=is_shared)
            used = usage_of(self._db, conversation.session_id).since(before)
            self._budgets.add(user_key(source), used)
        except LeaseTakenError as error:  # another process is running a turn: wait for it
            time.sleep(LEASE_RETRY_SECONDS)
            raise RetryLaterError from error
        except StoreError:
            raise  # the inbox worker retries
        except HermesError as error:
            kind = NO_MODEL_FAILURE if isinstance(error, NoModelError) else INTERNAL_FAILURE
            return TurnReply.refused(kind, f"Cannot answer: {error}")
        else:
            return reply
        finally:
            self._conversations.release(entry.session_id)
            self._questions.end_turn(entry.session_key)

    def _refusal(self, source: SessionSource, inbox_id: int) -> TurnReply | None:
        """Why a turn cannot run now."""
        text = self.budget_refusal(source)
        if text:
            return TurnReply.refused(BUDGET_FAILURE, text)
        text = self._limits.refusal(source, inbox_id)
        wait = self._limits.wait_seconds(source) if text else None
        return TurnReply.refused(FailureKind.LIMIT, text, wait) if text else None

    def budget_refusal(self, source: SessionSource, *, can_wait: bool = True) -> str:
        """Why a program has to try again tomorrow; a person's message waits instead.

        Raises BudgetExceededError for a message that *can_wait*: clients of the API do not.
        """
        exceeded = self._budgets.exceeded(user_key(source))
        if exceeded is None:
            return ""
        if can_wait and source.platform is not Platform.API_SERVER:
            raise BudgetExceededError(exceeded)
        return f"{exceeded.reason} Try again tomorrow."

    def _run(self, prompt: TurnPrompt, conversation: Conversation, *, is_shared: bool) -> TurnReply:
        row = prompt.rows[0]
        message_id = self._stored_row(conversation.session_id, row)
        if message_id is not None:
            later = self._db.messages.rows(conversation.session_id, after_id=message_id)
            reply = _finished_reply(later, conversation.agent.model)
            if reply is not None:
                return reply
        is_retry = message_id is not None  # an earlier attempt may have shown text
        with self._live_replies.show(row.inbox_id, prompt.events[-1], is_retry=is_retry) as buffer:
            on_answer = _delivery_of(prompt, buffer)
            if message_id is None:
                turn = self._start(prompt, conversation, on_answer, is_shared=is_shared)
            else:
                turn = conversation.continue_turn(on_answer)
            last = self._follow(turn, buffer, row.inbox_id)
        conversation.agent.pop_steering()  # unread steering stays in the inbox
        return self._reply_of(last)

    def _start(
        self,
        prompt: TurnPrompt,
        conversation: Conversation,
        on_answer: AnswerHook | None,
        *,
        is_shared: bool,
    ) -> Iterable[Event]:
        uid, *merged = [prompt_format.message_uid(row.inbox_id) for row in prompt.rows]
        workspace, source = _workspace_for_files(conversation), prompt.events[-1].source
        for event in prompt.events:
            self._fetch_files(event)
        attachments = [
            read_attachments(event, self._transcribe, workspace) for event in prompt.events
        ]
        texts = [prompt.text] if prompt.text else _texts(prompt, is_shared=is_shared)
        notes = [note for attachment in attachments for note in attachment.notes]
        return conversation.send(
            "\n".join([*texts, *notes]),
            [image for attachment in attachments for image in attachment.images],
            identity=PromptIdentity(
                uid,
                tuple(merged),
                prompt.rows[0].message_id,
                (source.user_id or "") if source is not None else "",
            ),
            on_answer=on_answer,
        )

    def _fetch_files(self, event: MessageEvent) -> None:
        """Make the files of a message local, which another node may have received."""
        if event.media_urls:
            media = media_of(self._db)
            event.media_urls = [str(media.local_path(Path(path))) for path in event.media_urls]

    def _follow(
        self, turn: Iterable[Event], buffer: ReplyBuffer, inbox_id: int
    ) -> events.TurnFinished | None:
        """Run a turn to its end and write its text to a live reply."""
        last = None
        for event in turn:
            self._on_progress(inbox_id, event)
            if isinstance(event, events.TextDelta):
                buffer.append(event.text)
            elif isinstance(event, events.ToolStarted) or _ends_answer(event):
                buffer.start_message()
            elif isinstance(event, events.TurnFinished):
                last = event
        return last

    def _reply_of(self, last: events.TurnFinished | None) -> TurnReply:
        if last is None:
            text = "The turn ended unexpectedly. Please send your message again."
            return TurnReply.refused(INTERNAL_FAILURE, text)
        if last.end is events.TurnEnd.INTERRUPTED:
            if self.is_stopping:
                raise RetryLaterError
            return TurnReply(f"{last.text}\n\n(Stopped.)".strip(), last.usage)
        if last.end is events.TurnEnd.FAILED:
            text = f"{last.text}\n\nThe turn failed: {last.error}".strip()
            kind = last.failure.kind if last.failure else INTERNAL_FAILURE
            retry_after = last.failure.retry_after if last.failure else None
            return TurnReply(text, last.usage, _failure(kind, last.error, retry_after))
        return TurnReply.of(last)


def _ends_answer(event: Event) -> bool:
    """Whether other text follows than what was streamed so far."""
    if isinstance(event, events.Retrying):
        return event.drops_text
    return isinstance(event, events.Notice) and event.ends_answer


def _delivery_of(prompt: TurnPrompt, buffer: ReplyBuffer) -> AnswerHook | None:
    """What stores the delivery of the answer; the live reply ends before."""
    deliver = prompt.deliver
    if deliver is None:
        return None
    return lambda last: deliver(TurnReply.of(last), buffer.finish())


def _workspace_for_files(conversation: Conversation) -> Path | None:
    """The folder that attachments are copied to; None if the tools open no files.

    The tools of a conversation do not see the media store, which has the files of all chats.
    """
    return conversation.agent.cwd if may(conversation.options.role, Right.FILES) else None


def _texts(prompt: TurnPrompt, *, is_shared: bool) -> list[str]:
    texts = [format_message(event, is_shared=is_shared) for event in prompt.events]
    return [text for text in texts if text.strip()]


def _finished_reply(rows: list[MessageRow], model: str) -> TurnReply | None:
    """The reply in the messages after a prompt; None if it is not complete."""
    last = rows[-1] if rows else None
    if last is None or last.role != "assistant" or last.tool_calls:
        return None
    if last.finish_reason in UNFINISHED:
        return None
    text = str(last.content or "")
    found = find_problem(last.finish_reason, text, model)
    if found is None:
        return TurnReply(text)
    return TurnReply(with_notice(text, found.text), problem=found.problem)
