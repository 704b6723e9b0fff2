"""Long answers in split_text that a platform takes."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.platforms.base import split_text, utf16_length

LINES = st.lists(
    st.one_of(
        st.text(alphabet="ab \u00e9😀", max_size=30),
        st.sampled_from(["```", "~~~", "", "x = 1", "- item", "````"]),
    ),
    max_size=25,
).map("\n".join)


def test_a_short_answer_is_one_piece() -> None:
    assert split_text("Hello.\n\nYou.", 100) == ["Hello.\n\nYou."]
    assert split_text("", 100) == []


def test_pieces_end_between_paragraphs() -> None:
    text = "one two three.\n\nfour five six.\n\nseven eight."
    assert split_text(text, 32) == ["one two three.\n\nfour five six.", "seven eight."]


def test_a_block_of_code_is_closed_and_opened_again() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(20))
    result = split_text(f"See:\n\n```python\n{code}\n```\n\nDone.", 120)
    assert len(result) > 2
    for piece in result:
        assert piece.count("```") % 2 == 0, piece
        assert len(piece) <= 120
    assert result[1].startswith("```python\n")


def test_a_word_that_is_too_long_is_split() -> None:
    assert split_text("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_utf16_surrogate_pairs_count_twice() -> None:
    result = split_text("😀" * 9, 10, utf16_length)
    assert result == ["😀" * 5, "😀" * 4]


@given(text=LINES, longest=st.integers(20, 80))
@example(text="```\n" + "a" * 100, longest=20)
def test_no_chunk_is_too_long_and_no_word_is_lost(text: str, longest: int) -> None:
    result = split_text(text, longest)
    assert all(0 < len(piece) <= longest for piece in result)
    results = re.sub(r"[\s`~]", "", "".join(result))
    assert results == re.sub(r"[\s`~]", "", text)


@given(text=LINES)
def test_counted_in_utf16_no_piece_is_too_long_either(text: str) -> None:
    assert all(utf16_length(piece) <= 20 for piece in split_text(text, 20, utf16_length))
