"""Search results."""

from __future__ import annotations

from typing import Final, NamedTuple, TypedDict


class HitContextDict(TypedDict):
    """A message beside a search result, as a dictionary."""

    role: str
    content: str


class FoundMessageDict(TypedDict):
    """A search result, as a dictionary."""

    id: int
    session_id: str
    role: str
    snippet: str
    snippet_text: str
    offsets: list[list[int]]
    timestamp: float
    tool_name: str | None
    source: str
    model: str | None
    session_started: float
    context: list[HitContextDict]
    words_found: int


class HitContext(NamedTuple):
    """A message beside a search result, or the result itself."""

    role: str
    content: str


class FoundMessage(NamedTuple):
    """A message that matches; `offsets` are the positions of the matches in `snippet_text`."""

    id: int
    session_id: str
    role: str
    snippet: str
    snippet_text: str
    offsets: tuple[tuple[int, int], ...]
    timestamp: float
    tool_name: str | None
    source: str
    model: str | None
    session_started: float
    context: list[HitContext]
    words_found: int = 0  # how many words of a question it contains, if it was ranked
    place: int = 0  # of the result in its context

    def as_dict(self) -> FoundMessageDict:
        """The result as a dictionary for plugins and JSON output."""
        return {
            "id": self.id,
            "session_id": self.session_id,
            "role": self.role,
            "snippet": self.snippet,
            "snippet_text": self.snippet_text,
            "offsets": [list(span) for span in self.offsets],
            "timestamp": self.timestamp,
            "tool_name": self.tool_name,
            "source": self.source,
            "model": self.model,
            "session_started": self.session_started,
            "context": [{"role": role, "content": content} for role, content in self.context],
            "words_found": self.words_found,
        }


# The steps of a search, strictest first.
AS_WRITTEN: Final = "as written"
WITHOUT_FUNCTION_WORDS: Final = "all content words"
AS_PREFIX: Final = "the last word as a prefix"
ANY_FORM: Final = "all content words in any form"
ANY_WORD: Final = "any word"
BY_MEANING: Final = "similar in meaning"


class Correction(NamedTuple):
    """A word that occurs nowhere, and the one that was searched for instead."""

    written: str
    used: str


class SearchAnswer(NamedTuple):
    """Messages that answer a query, and how they were found."""

    hits: list[FoundMessage]
    sort: str
    step: str
    words: tuple[str, ...] = ()  # the content words, if the step is not "as written"
    corrections: tuple[Correction, ...] = ()


NOTHING: Final = SearchAnswer([], "newest", AS_WRITTEN)
