"""The bounded set of recent items."""

from __future__ import annotations

from gateway.platforms.deduplication import RecentItems


def test_only_so_much_is_remembered() -> None:
    recent = RecentItems(limit=2)
    for word in ("a", "b", "c"):
        recent.add(word, word.upper())
    assert ("a" in recent, recent.note_of("c")) == (False, "C")
    assert (recent.forget("c"), recent.forget("c")) == ("C", None)
