"""Searching by reading: every message in turn, newest or oldest first.

Correct in every script and with no index to maintain; its cost grows with the history.
Rows are read in chunks, so that no read holds the log open for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import plain_text
from hermes_state.codec import decode_content
from hermes_state.part import StorePart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.transaction import Reader

CHUNK_ROWS: Final = 2000
CONTEXT_CHARACTERS: Final = 200
SNIPPET_CHARACTERS: Final = 120

CHUNK = """
    SELECT m.id, m.session_id, m.role, m.content, m.timestamp, m.tool_name, m.tool_calls,
           s.source, s.model, s.started_at
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.id {comparison} ? AND (coalesce(m.active, 1) = 1 OR m.compacted = 1 OR ?)
    ORDER BY m.id {direction} LIMIT ?
"""
NEIGHBOURS = """
    SELECT role, content FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? ORDER BY id
"""
HIT_NAMES: Final = (
    "id", "session_id", "role", "content", "timestamp", "tool_name", "tool_calls", "source",
    "model", "session_started",
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What is looked for."""

    words: tuple[str, ...]
    sources: tuple[str, ...]
    exclude_sources: tuple[str, ...]
    roles: tuple[str, ...]
    include_inactive: bool

    def answers(self, hit: dict[str, Any], text: str) -> bool:
        """Whether a row is an answer."""
        if self.roles and hit["role"] not in self.roles:
            return False
        if self.sources and hit["source"] not in self.sources:
            return False
        if hit["source"] in self.exclude_sources:
            return False
        folded = text.casefold()
        return all(word in folded for word in self.words)


def split_query(query: str) -> tuple[str, ...]:
    """Words and "quoted phrases", folded."""
    parts = query.split('"')
    words = [word for part in parts[0::2] for word in part.split()]
    phrases = [part.strip() for part in parts[1::2] if part.strip()]
    return tuple(word.casefold() for word in (*words, *phrases))


def searched_text(row: dict[str, Any]) -> str:
    """The text of a row that a search looks at."""
    parts = (plain_text(decode_content(row["content"])), row["tool_name"], row["tool_calls"])
    return "\n".join(part for part in parts if part)


def snippet(text: str, words: Sequence[str]) -> str:
    """The surroundings of the first hit, the hit marked >>>so<<<."""
    folded = text.casefold()
    start = min((folded.find(word) for word in words if word in folded), default=0)
    word = next((word for word in words if folded.startswith(word, start)), "")
    begin = max(0, start - SNIPPET_CHARACTERS // 2)
    end = start + len(word)
    before = ("…" if begin else "") + text[begin:start]
    after = text[end : end + SNIPPET_CHARACTERS]
    tail = "…" if end + SNIPPET_CHARACTERS < len(text) else ""
    return f"{before}>>>{text[start:end]}<<<{after}{tail}" if word else text[:SNIPPET_CHARACTERS]


class SearchPart(StorePart):
    """Finding messages."""

    def search_messages(
        self,
        query: str,
        source_filter: Sequence[str] | None = None,
        exclude_sources: Sequence[str] | None = None,
        role_filter: Sequence[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        sort: str | None = None,
        include_inactive: bool = False,
    ) -> list[dict[str, Any]]:
        """Messages that contain every word of *query*; "quotes" make a phrase.

        Newest first unless sort="oldest". Undone rows are left out unless asked for.
        """
        words = split_query(query)
        if not words:
            return []
        question = Question(
            words,
            tuple(source_filter or ()),
            tuple(exclude_sources or ()),
            tuple(role_filter or ()),
            include_inactive,
        )
        hits = []
        for hit in self._hits(question, newest_first=sort != "oldest"):
            hits.append(hit)
            if limit >= 0 and len(hits) >= offset + limit:
                break
        return [self._with_context(hit) for hit in hits[offset:]]

    def _hits(self, question: Question, *, newest_first: bool) -> Iterator[dict[str, Any]]:
        comparison, direction = ("<", "DESC") if newest_first else (">", "ASC")
        sql = CHUNK.format(comparison=comparison, direction=direction)
        position = 2**62 if newest_first else 0
        while True:
            parameters = (position, question.include_inactive, CHUNK_ROWS)
            rows = self.engine.read(
                lambda reader, values=parameters: reader.rows(sql, values)  # type: ignore[misc]
            )
            for row in rows:
                hit = dict(zip(HIT_NAMES, row, strict=True))
                text = searched_text(hit)
                if question.answers(hit, text):
                    hit["snippet"] = snippet(text, question.words)
                    del hit["content"], hit["tool_calls"]
                    yield hit
            if len(rows) < CHUNK_ROWS:
                return
            position = rows[-1][0]

    def _with_context(self, hit: dict[str, Any]) -> dict[str, Any]:
        def around(reader: Reader) -> list[tuple[Any, ...]]:
            return reader.rows(NEIGHBOURS, (hit["session_id"], hit["id"] - 1, hit["id"] + 1))

        hit["context"] = [
            {"role": role, "content": plain_text(decode_content(content))[:CONTEXT_CHARACTERS]}
            for role, content in self.engine.read(around)
        ]
        return hit
