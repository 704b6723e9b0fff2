"""Plain text, previews and titles of message contents."""

from __future__ import annotations

import tracemalloc
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.errors import TitleError, UsageError
from hermes_core.messages import has_lone_surrogate, plain_text, preview, sanitize_title

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("type"), inner),
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("hello", "hello"),
        ([], ""),
        ([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}],
         "look\n[image]"),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "a\nb"),
        ([{"type": "input_audio", "input_audio": {}}, {"type": "document"}], "[audio]\n[file]"),
        ([{"type": "video"}, "plain"], "[video]\nplain"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "42"}]}], "42"),
        ({"type": "text", "text": "one part"}, "one part"),
        ({"type": "text"}, ""),
        ({"content": [{"type": "text", "text": "in"}, {"type": "image"}]}, "in\n[image]"),
        ({"text_summary": "summed up"}, "summed up"),
        ([{"type": "thing"}], "[thing]"),
        ({"a": 1}, "[data]"),
        (5, "5"),
    ],
)  # fmt: skip
def test_every_kind_of_content_has_a_plain_text(content, text):
    assert plain_text(content) == text


@given(JSON)
def test_any_json_content_has_a_plain_text(content):
    assert isinstance(plain_text(content), str)
    assert isinstance(preview(content), str)


def test_recursive_content_is_limited():
    content = []
    content.append(content)
    assert plain_text(content) == ""


def test_a_preview_is_one_line():
    assert preview("  a\n\n b\tc ") == "a b c"


def test_a_short_text_is_not_shortened():
    assert preview("x" * 60) == "x" * 60


def test_a_long_text_is_shortened_with_dots():
    assert preview("x" * 61) == "x" * 60 + "..."


def test_there_is_no_space_before_the_dots():
    assert preview("a" * 59 + " bcd") == "a" * 59 + "..."


@pytest.mark.parametrize(
    "cluster",
    [
        "e\u0301",
        "👍🏽",
        "👩\u200d👩\u200d👧",
        "❤\ufe0f",
        "🇩🇪",
        "\ud83d\ude00",
        "क\u093f",
        "🏴\U000e0067\U000e007f",
    ],
)
@pytest.mark.parametrize("before", range(50, 60))
def test_a_character_of_several_code_points_is_not_split(cluster, before):
    shown = preview("x" * before + cluster * 20)
    result = shown.removesuffix("...").removeprefix("x" * before)
    assert result == cluster * (len(result) // len(cluster))


def test_a_long_sequence_of_combining_marks_is_split():
    assert len(preview("a" + "\u0301" * 5000)) <= 63


@given(st.text(), st.integers(1, 100))
def test_a_preview_never_exceeds_its_limit_by_more_than_the_dots(text, limit):
    shown = preview(text, limit)
    assert len(shown) <= limit + 3
    assert shown == " ".join(text.split()) or shown.endswith("...")


def test_the_preview_of_a_huge_text_does_not_process_all_of_it():
    text = "word " * 20_000_000
    tracemalloc.start()
    try:
        assert len(preview(text)) <= 63
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < len(text) // 1000


def test_a_preview_skips_leading_spaces():
    assert preview(" " * 100_000 + "oasis") == "oasis"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (None, None),
        ("", None),
        (" \n ", None),
        ("\u200b\u202e\x07", None),
        ("  Trip\tto \n Rome ", "Trip to Rome"),
        ("a\u200bb\u202ec\u2066d\ufeffe", "abcde"),
        ("bell\x07 nul\x00 del\x7f", "bell nul del"),
        ("half\ud800", "half"),
        ("naïve 日本 😀", "naïve 日本 😀"),
        ("x" * 100, "x" * 100),
        ("x" * 100 + "\u200b \n", "x" * 100),
    ],
)
def test_a_title_is_one_visible_line(text, title):
    assert sanitize_title(text) == title


def test_a_title_that_is_too_long_is_refused_with_both_numbers():
    with pytest.raises(TitleError, match=r"101 .*100") as caught:
        sanitize_title("x" * 101)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, UsageError)


@given(st.text(max_size=90))
def test_sanitizing_a_title_is_idempotent(text):
    title = sanitize_title(text)
    assert sanitize_title(title) == title
    assert title is None or not any(unicodedata.category(c) in {"Cc", "Cs"} for c in title)


@pytest.mark.parametrize(
    ("text", "lone"),
    [
        ("", False),
        ("abc", False),
        ("é😀", False),
        ("\ud800", True),
        ("x\udfff", True),
        ("\ud83d\ude00", True),
    ],
)
def test_a_lone_surrogate_is_detected(text, lone):
    assert has_lone_surrogate(text) is lone
