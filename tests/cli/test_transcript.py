"""Stored messages as readable text."""

from __future__ import annotations

import pytest

from hermes_cli.commands.sessions import show
from support.rows import message_row


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("plain  \n", "plain"),
        ([{"type": "text", "text": "look"}, {"type": "image_url"}], "look\n[image]"),
        ([{"type": "input_audio"}, "words", 7], "[audio]\nwords\n7"),
        ({"text": "one part"}, "one part"),
        ({}, "[object]"),
        ([], ""),
    ],
)
def test_content(content: object, text: str) -> None:
    assert show.content_text(content) == text


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ({"function": {"name": "ls", "arguments": "{}"}}, "→ ls({})"),
        ({"name": "ls", "arguments": "a\nb"}, "→ ls(a b)"),
        ({"function": {"name": "ls", "arguments": "x" * 300}}, f"→ ls({'x' * 99}…)"),
        ({}, "→ unnamed tool()"),
        ("garbage", "→ unnamed tool()"),
    ],
)
def test_calls(call: object, line: str) -> None:
    assert show.call_line(call) == line


def test_long_text_is_collapsed_with_its_length() -> None:
    assert show.fold("short\ntext") == "short\ntext"
    folded = show.fold("x" * 5000)
    assert folded.startswith("x" * show.FOLD_CHARACTERS + "\n")
    assert "3,800 more characters" in folded
    assert show.fold("\n".join("abcdefghij")).startswith("a\nb\nc\nd\ne\nf\ng\nh\n…")


def test_marks() -> None:
    assert show._marks(message_row()) == []
    assert show._marks(message_row(active=0, compacted=1)) == ["compacted"]
    assert show._marks(message_row(finish_reason="length")) == ["cut off at the output limit"]
    assert show._marks(message_row(active=0, finish_reason="interrupted")) == [
        "undone",
        "interrupted",
    ]
