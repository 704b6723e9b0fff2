"""Exports and pictures: whole, well-formed, and nothing in them is obeyed or private."""

from __future__ import annotations

import json
import re
import struct
from typing import Any
from xml.etree import ElementTree

import pytest

from hermes_achievements import catalogue, export
from hermes_achievements.evaluation.standings import count_states, evaluate
from hermes_achievements.pictures import svg as raster
from hermes_achievements.pictures import svg as text_width
from hermes_core.errors import UsageError

PRIVATE = "Letter to my lawyer"
EVIL = '<script>alert("1")</script> & | *bold* `x`'
LONG = "An achievement whose name goes on and on until nobody can remember how it began " * 3
CATALOGUE = catalogue.load()


@pytest.fixture
def snapshot() -> dict[str, Any]:
    """Everything halfway earned, with evidence that is nobody else's business."""
    values = {entry.value: entry.thresholds[0][1] for entry in list(CATALOGUE)[::2]}
    evidence = {"at": 1_780_000_000.0, "session_id": "s-1", "message_id": 7, "title": PRIVATE}
    unlocks = {
        entry.id: {"tiers": {entry.thresholds[0][0]: evidence}, "unlocked_at": evidence["at"]}
        for entry in list(CATALOGUE)[::2]
    }
    shown = evaluate(CATALOGUE, values, unlocks)
    shown[0]["name"], shown[2]["name"] = EVIL, LONG
    return {
        "achievements": shown,
        **count_states(shown),
        "aggregate": {"total_commits": 5},
        "generated_at": 1_790_000_000.0,
    }


def tags(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own picture


def test_json_holds_what_everybody_may_see(snapshot: dict[str, Any]) -> None:
    result = export.render(snapshot, CATALOGUE, "JSON")
    assert (result.name, result.media_type) == ("achievements.json", "application/json")
    data = json.loads(result.content)
    assert len(data["achievements"]) == data["total_count"] == len(CATALOGUE)
    assert data["generated_at"] == snapshot["generated_at"]
    assert "aggregate" not in data
    assert data["achievements"][0]["tier_history"][0]["at"] == 1_780_000_000.0
    assert "s-1" not in result.content.decode()


@pytest.mark.parametrize("form", ["json", "markdown", "svg"])
def test_no_conversation_is_named(form: str, snapshot: dict[str, Any]) -> None:
    assert PRIVATE not in export.render(snapshot, CATALOGUE, form).content.decode()


@pytest.mark.parametrize("form", ["markdown", "svg"])
def test_text_is_never_markup(form: str, snapshot: dict[str, Any]) -> None:
    content = export.render(snapshot, CATALOGUE, form).content.decode()
    assert "<script" not in content
    assert "&lt;script" in content


def test_markdown_has_a_table_for_each_category(snapshot: dict[str, Any]) -> None:
    text = export.render(snapshot, CATALOGUE, "markdown").content.decode()
    for category in CATALOGUE.categories:
        assert f"## {category.name} (" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) in (5, len(CATALOGUE.tiers) + 1), row
    assert f"**{snapshot['unlocked_count']:,} of {len(CATALOGUE)} unlocked**" in text


def test_markdown_gives_of_secrets_only_the_hint(snapshot: dict[str, Any]) -> None:
    text = export.render(snapshot, CATALOGUE, "markdown").content.decode()
    hidden = [
        achievement for achievement in snapshot["achievements"] if achievement["state"] == "secret"
    ]
    assert hidden
    assert text.count("🔒") == len(hidden)
    names = {entry.hint: entry.name for entry in CATALOGUE if entry.secret}
    for item in hidden:
        assert names[item["hint"]] not in text


def test_svg_is_well_formed_and_asks_nobody(snapshot: dict[str, Any]) -> None:
    svg = export.render(snapshot, CATALOGUE, "svg").content.decode()
    root = tags(svg)
    titles = [item.text for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert f"of {len(CATALOGUE)} achievements" in titles
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "href" not in svg
    for tier in CATALOGUE.tiers:
        assert tier.glow in svg


def test_long_names_stay_inside_their_tile(snapshot: dict[str, Any]) -> None:
    root = tags(export.render(snapshot, CATALOGUE, "svg").content.decode())
    for item in root.iter("{http://www.w3.org/2000/svg}text"):
        if item.get("text-anchor") == "middle":
            assert text_width.text_width(item.text or "", float(item.get("font-size", 0))) <= 145


def test_png_is_a_picture(snapshot: dict[str, Any]) -> None:
    result = export.render(snapshot, CATALOGUE, "png")
    assert result.content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", result.content[16:24])
    assert width == 1600
    assert height > 1000


def test_an_unknown_format_names_those_there_are(snapshot: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="accepted: json, markdown, svg, png"):
        export.render(snapshot, CATALOGUE, "pdf")


def test_nothing_earned_is_a_picture_too() -> None:
    shown = evaluate(CATALOGUE, {}, {})
    empty = {"achievements": shown, **count_states(shown), "generated_at": 0.0}
    for form in ("markdown", "svg"):
        assert export.render(empty, CATALOGUE, form).content


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_card_shows_one_achievement(place: int, snapshot: dict[str, Any]) -> None:
    svg = export.card(snapshot["achievements"][place], CATALOGUE)
    root = tags(svg)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    assert "<script" not in svg
    assert PRIVATE not in svg
    for item in root.iter("{http://www.w3.org/2000/svg}text"):
        size = float(item.get("font-size", 0))
        wide = text_width.text_width(item.text or "", size, is_bold=True)
        start = float(item.get("x", 0)) - (wide if item.get("text-anchor") == "end" else 0)
        assert start >= 0
        assert start + wide <= 1170
    assert struct.unpack(">II", raster.png(svg)[16:24]) == (1200, 630)


def test_what_is_not_earned_has_no_card(snapshot: dict[str, Any]) -> None:
    locked = next(
        achievement for achievement in snapshot["achievements"] if not achievement["unlocked"]
    )
    with pytest.raises(UsageError, match="not unlocked yet"):
        export.card(locked, CATALOGUE)


@pytest.mark.parametrize("words", ["\x00\x08 \ud800 \ufffe", "世界 🎉", "Größe ½"])
def test_any_text_can_be_drawn(words: str, snapshot: dict[str, Any]) -> None:
    result = {**snapshot["achievements"][0], "name": words, "description": words * 20}
    svg = export.card(result, CATALOGUE)
    tags(svg)
    assert raster.png(svg).startswith(b"\x89PNG")
