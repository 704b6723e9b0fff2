"""Terminal text: control characters removed, measured, cut."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core import human_format, terminal_text

pytestmark = pytest.mark.clock

NOW = 1_800_000_000.0


@given(st.text())
def test_nothing_that_acts_survives(text: str) -> None:
    cleaned = terminal_text.clean(text)
    cleaned.encode("utf-8")
    acting = {"Cc", "Cs", "Zl", "Zp"}
    assert all(char == "\n" or unicodedata.category(char) not in acting for char in cleaned)
    assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])))
def test_ordinary_text_is_cleaned_only_once(text: str) -> None:
    once = terminal_text.clean(text)
    assert terminal_text.clean(once) == once


@given(st.text(), st.integers(0, 40))
def test_cut_text_fits(text: str, cells: int) -> None:
    line = terminal_text.one_line(text)
    assert terminal_text.width(terminal_text.fit(line, cells)) <= cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("\x9b31m", "\ufffd31m"),
        ("a\tb", "a    b"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a␍b"),
        ("naïve 世界 👩‍👩‍👧", "naïve 世界 👩‍👩‍👧"),
        ("\ud800", "\ufffd"),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert terminal_text.clean(text) == expected


def test_wide_characters_take_two_cells() -> None:
    assert terminal_text.width("世界") == 4
    assert terminal_text.fit("世界世界", 5) == "世界…"
    assert terminal_text.pad("世", 4) == "世  "
    assert terminal_text.pad("7", 3, right=True) == "  7"


@pytest.mark.parametrize(
    ("seconds", "expected_text"),
    [
        (-10, "just now"),
        (0, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3 * 3600 + 5, "3 h ago"),
        (86_400, "yesterday"),
        (5 * 86_400, "5 days ago"),
    ],
)
def test_ago(seconds: float, expected_text: str) -> None:
    assert human_format.ago(NOW - seconds, NOW) == expected_text


def test_old_and_future_times_are_dates() -> None:
    assert human_format.ago(NOW - 100 * 86_400, NOW) == human_format.date(NOW - 100 * 86_400)
    assert human_format.ago(NOW + 7200, NOW) == human_format.date(NOW + 7200)


def test_numbers_that_are_no_times() -> None:
    assert human_format.ago(None, NOW) == "-"
    assert human_format.local(1e30) == "-"
    assert human_format.local(float("nan")) == "-"


@pytest.mark.parametrize(
    ("count", "expected_text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (6_400_000_000, "6.4 GB")],
)
def test_size(count: int | None, expected_text: str) -> None:
    assert human_format.size(count) == expected_text


def test_plural() -> None:
    assert human_format.plural(1, "message") == "1 message"
    assert human_format.plural(1200, "message") == "1,200 messages"
