"""Requests of API clients: which conversation a transcript continues, and which are repeated.

A client without sessions sends its whole transcript each time. Every request is stored with a
hash of the transcript that it sent, and after its answer with the hash that the client will send
next time, so that the next request is recognised by its beginning.

In one chat each request follows another one, which only one request can do: a second request
that continues the same transcript, e.g. after an edit, starts a chat of its own, as a branch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.messages import history
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Reader, Tx

COLUMNS: Final = (
    "request_id, token, scope, digest, chat_id, asked, plan, session_id, inbox_id, state"
)
INSERT = """
    INSERT INTO hermes_api_request
        (token, message_id, scope, digest, chat_id, follows, asked, plan, state, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?) ON CONFLICT DO NOTHING
"""
BY_TOKEN = f"SELECT {COLUMNS} FROM hermes_api_request WHERE token = ?"  # noqa: S608
# The conversations that end with a transcript; the latest first.
ENDING_WITH = f"""
    SELECT {COLUMNS} FROM hermes_api_request
    WHERE scope = ? AND (answered = ? OR streamed = ?) ORDER BY request_id DESC LIMIT 20
"""  # noqa: S608
# A failed request is followed by none, so another one may take its place.
FREE_PLACE = """
    UPDATE hermes_api_request SET follows = NULL
    WHERE chat_id = ? AND follows = ? AND state = 'failed'
"""
IS_FOLLOWED = "SELECT 1 FROM hermes_api_request WHERE chat_id = ? AND follows = ?"
SETTLE = """
    UPDATE hermes_api_request SET state = ?, answered = coalesce(answered, ?),
        streamed = coalesce(streamed, ?), session_id = ?, inbox_id = ?, settled_at = ?
    WHERE token = ?
"""
REPEATED = """
    SELECT request_id, message_id FROM hermes_api_request
    WHERE scope = ? AND digest = ? AND retries < ? AND (state = 'open' AND created_at > ?
        OR state = 'answered' AND settled_at > ?)
    ORDER BY retries, request_id LIMIT 1
"""
COUNT_RETRY = "UPDATE hermes_api_request SET retries = ? WHERE request_id = ? AND retries < ?"
DELETE_OLD = "DELETE FROM hermes_api_request WHERE created_at < ?"
IS_PRESENT = """
    SELECT 1 FROM sessions s WHERE s.id = ?
        AND NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = s.id)
"""
HAS_ROUTE = "SELECT 1 FROM hermes_route WHERE session_id = ?"
# The answer to a prompt, if it is still in the model's context.
ANSWER_TO = """
    SELECT id FROM messages WHERE session_id = ? AND id > ? AND role = 'assistant'
        AND coalesce(active, 1) = 1 AND coalesce(tool_calls, '') IN ('', '[]', 'null')
        AND coalesce(finish_reason, '') NOT IN ('interrupted', 'error', 'crashed')
    ORDER BY id LIMIT 1
"""
PROMPT_UID: Final = "inbox:{inbox_id}"
SECONDS_PER_DAY: Final = 86400.0


class NewApiRequest(NamedTuple):
    """A request to be stored."""

    token: str
    message_id: str
    scope: str  # of the client: others are not recognised
    digest: str  # of the content
    new_chat: str  # if it starts a chat
    chat_id: str = ""  # that the client has named
    hashes: Sequence[str] = ()  # of the beginnings of the transcript, the longest first
    asked: str = ""  # of the whole transcript


class ConversationPoint(NamedTuple):
    """The end of an answer in a conversation; without a session, whatever the chat has."""

    session_id: str
    message_id: int


class RequestPlan(NamedTuple):
    """What a request continues."""

    chat_id: str
    point: ConversationPoint | None = None  # None: the chat is new, or was named by the client
    matched: str = ""  # the hash of the known beginning


class _Row(NamedTuple):
    request_id: int
    token: str
    scope: str
    digest: str
    chat_id: str
    asked: str
    plan: str
    session_id: str | None
    inbox_id: int | None
    state: str


class ApiRequestRepository(Repository):
    """Requests of API clients."""

    def open(self, request: NewApiRequest) -> RequestPlan:
        """Store a request; the same one again has the same plan."""

        def open_request(tx: Tx) -> RequestPlan:
            known = tx.row(BY_TOKEN, (request.token,))
            if known is not None:
                return _plan(_Row._make(known))
            if request.chat_id:
                plan = RequestPlan(request.chat_id)
                self._insert(tx, request, plan, None)
                return plan
            return self._continue(tx, request)

        return self.engine.write(open_request)

    def _continue(self, tx: Tx, request: NewApiRequest) -> RequestPlan:
        for digest in request.hashes:
            rows = tx.rows(ENDING_WITH, (request.scope, digest, digest))
            ends = [_Row._make(row) for row in rows]
            for end in ends:
                plan = _following(tx, end, digest)
                if plan is not None and self._insert(tx, request, plan, end.request_id):
                    return plan
            points = (_branch_point(tx, end) for end in ends)
            point = next((point for point in points if point is not None), None)
            if point is not None:
                plan = RequestPlan(request.new_chat, point, digest)
                self._insert(tx, request, plan, 0)
                return plan
        plan = RequestPlan(request.new_chat)
        self._insert(tx, request, plan, 0)
        return plan

    def _insert(
        self, tx: Tx, request: NewApiRequest, plan: RequestPlan, follows: int | None
    ) -> bool:
        """Store a request in its chat; False if another one follows the same request."""
        text = json.dumps([plan.chat_id, plan.point, plan.matched])
        row = (request.token, request.message_id, request.scope, request.digest, plan.chat_id)
        values = (*row, follows, request.asked, text, self.clock.now())
        return tx.execute(INSERT, values).rowcount > 0

    def settle(
        self,
        token: str,
        hashes: Sequence[str],
        session_id: str | None = None,
        inbox_id: int | None = None,
        *,
        is_failed: bool = False,
    ) -> None:
        """Record the answer of a request: hashes of the transcript with it, at most two.

        The second is that of the answer as it was streamed, if it differs.
        """
        answered, streamed = (*hashes, None, None)[:2]
        state = "failed" if is_failed else "answered"
        values = (state, answered, streamed, session_id, inbox_id, self.clock.now(), token)
        self.engine.write(lambda tx: tx.run(SETTLE, values))

    def asked_hash(self, token: str) -> str:
        """The hash of the transcript that a request has sent."""
        row = self.engine.read(lambda reader: reader.row(BY_TOKEN, (token,)))
        return "" if row is None else _Row._make(row).asked

    def join(
        self, scope: str, digest: str, retry: int, open_seconds: float, settled_seconds: float
    ) -> str | None:
        """The message ID of the request that a client's retry repeats; None if there is none.

        Of two equal requests that are both repeated, each is joined by one retry.
        """

        def join(tx: Tx) -> str | None:
            now = self.clock.now()
            values = (scope, digest, retry, now - open_seconds, now - settled_seconds)
            row = tx.row(REPEATED, values)
            if row is None or not tx.execute(COUNT_RETRY, (retry, row[0], retry)).rowcount:
                return None
            return str(row[1])

        return self.engine.write(join)

    def prune(self, days: float) -> int:
        """Delete old requests; their number."""
        oldest = self.clock.now() - days * SECONDS_PER_DAY
        return self.engine.write(lambda tx: tx.execute(DELETE_OLD, (oldest,)).rowcount)


def _plan(row: _Row) -> RequestPlan:
    chat_id, point, matched = json.loads(row.plan)
    return RequestPlan(chat_id, ConversationPoint(*point) if point else None, matched)


def _following(tx: Tx, end: _Row, digest: str) -> RequestPlan | None:
    """The plan of a request that continues a chat; None if another one has continued it."""
    tx.run(FREE_PLACE, (end.chat_id, end.request_id))
    if tx.value(IS_FOLLOWED, (end.chat_id, end.request_id)) is not None:
        return None
    if end.session_id is None:  # of a command: the chat may have another conversation now
        return RequestPlan(end.chat_id, ConversationPoint("", 0), digest)
    if tx.value(IS_PRESENT, (end.session_id,)) is None:
        return None
    message_id = _answer_id(tx, end)
    if not message_id and tx.value(HAS_ROUTE, (end.session_id,)) is None:
        return None  # it was summarised, and no chat has it
    return RequestPlan(end.chat_id, ConversationPoint(end.session_id, message_id), digest)


def _branch_point(tx: Tx, end: _Row) -> ConversationPoint | None:
    """Where a conversation ends with an answer; None if it cannot be branched there."""
    if end.session_id is None or tx.value(IS_PRESENT, (end.session_id,)) is None:
        return None
    message_id = _answer_id(tx, end)
    return ConversationPoint(end.session_id, message_id) if message_id else None


def _answer_id(reader: Reader, end: _Row) -> int:
    uid = PROMPT_UID.format(inbox_id=end.inbox_id)
    prompt = history.row_of(reader, str(end.session_id), uid)
    value: Any = prompt and reader.value(ANSWER_TO, (end.session_id, prompt))
    return int(value or 0)
