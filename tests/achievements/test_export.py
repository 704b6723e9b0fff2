"""Exports and pictures are complete, well-formed, escaped and without private data."""

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

PRIVATE_TITLE = "Letter to my lawyer"
MARKUP_NAME = '<script>alert("1")</script> & | *bold* `x`'
LONG_NAME = "An achievement whose name goes on and on until nobody can remember how it began " * 3
CATALOGUE = catalogue.load()


@pytest.fixture
def snapshot() -> dict[str, Any]:
    """A snapshot with half of the achievements unlocked, with private evidence."""
    values = {entry.value: entry.thresholds[0][1] for entry in list(CATALOGUE)[::2]}
    evidence = {"at": 1_780_000_000.0, "session_id": "s-1", "message_id": 7, "title": PRIVATE_TITLE}
    unlocks = {
        entry.id: {"tiers": {entry.thresholds[0][0]: evidence}, "unlocked_at": evidence["at"]}
        for entry in list(CATALOGUE)[::2]
    }
    shown = evaluate(CATALOGUE, values, unlocks)
    shown[0]["name"], shown[2]["name"] = MARKUP_NAME, LONG_NAME
    return {
        "achievements": shown,
        **count_states(shown),
        "aggregate": {"total_commits": 5},
        "generated_at": 1_790_000_000.0,
    }


def parse_svg(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own picture


def test_json_contains_only_public_fields(snapshot: dict[str, Any]) -> None:
    result = export.render(snapshot, CATALOGUE, "JSON")
    assert (result.name, result.media_type) == ("achievements.json", "application/json")
    data = json.loads(result.content)
    assert len(data["achievements"]) == data["total_count"] == len(CATALOGUE)
    assert data["generated_at"] == snapshot["generated_at"]
    assert "aggregate" not in data
    assert data["achievements"][0]["tier_history"][0]["at"] == 1_780_000_000.0
    assert "s-1" not in result.content.decode()


@pytest.mark.parametrize("form", ["json", "markdown", "svg"])
def test_exports_contain_no_session_title(form: str, snapshot: dict[str, Any]) -> None:
    assert PRIVATE_TITLE not in export.render(snapshot, CATALOGUE, form).content.decode()


@pytest.mark.parametrize("form", ["markdown", "svg"])
def test_texts_are_escaped(form: str, snapshot: dict[str, Any]) -> None:
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


def test_markdown_shows_only_the_hint_of_locked_secrets(snapshot: dict[str, Any]) -> None:
    text = export.render(snapshot, CATALOGUE, "markdown").content.decode()
    hidden = [
        achievement for achievement in snapshot["achievements"] if achievement["state"] == "secret"
    ]
    assert hidden
    assert text.count("🔒") == len(hidden)
    names = {entry.hint: entry.name for entry in CATALOGUE if entry.secret}
    for item in hidden:
        assert names[item["hint"]] not in text


def test_svg_is_well_formed_and_has_no_external_references(snapshot: dict[str, Any]) -> None:
    svg = export.render(snapshot, CATALOGUE, "svg").content.decode()
    root = parse_svg(svg)
    titles = [item.text for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert f"of {len(CATALOGUE)} achievements" in titles
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "href" not in svg
    for tier in CATALOGUE.tiers:
        assert tier.glow in svg


def test_long_names_stay_inside_their_tile(snapshot: dict[str, Any]) -> None:
    root = parse_svg(export.render(snapshot, CATALOGUE, "svg").content.decode())
    for item in root.iter("{http://www.w3.org/2000/svg}text"):
        if item.get("text-anchor") == "middle":
            assert text_width.text_width(item.text or "", float(item.get("font-size", 0))) <= 145


def test_png_is_a_picture(snapshot: dict[str, Any]) -> None:
    result = export.render(snapshot, CATALOGUE, "png")
    assert result.content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", result.content[16:24])
    assert width == 1600
    assert height > 1000


def test_an_unknown_format_lists_the_accepted_formats(snapshot: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="accepted: json, markdown, svg, png"):
        export.render(snapshot, CATALOGUE, "pdf")


def test_exports_work_without_unlocks() -> None:
    shown = evaluate(CATALOGUE, {}, {})
    empty = {"achievements": shown, **count_states(shown), "generated_at": 0.0}
    for form in ("markdown", "svg"):
        assert export.render(empty, CATALOGUE, form).content


@pytest.mark.parametrize("index", [0, 2, 4])
def test_a_card_shows_one_achievement(index: int, snapshot: dict[str, Any]) -> None:
    svg = export.card(snapshot["achievements"][index], CATALOGUE)
    root = parse_svg(svg)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    assert "<script" not in svg
    assert PRIVATE_TITLE not in svg
    for item in root.iter("{http://www.w3.org/2000/svg}text"):
        size = float(item.get("font-size", 0))
        text_pixels = text_width.text_width(item.text or "", size, is_bold=True)
        start = float(item.get("x", 0)) - (text_pixels if item.get("text-anchor") == "end" else 0)
        assert start >= 0
        assert start + text_pixels <= 1170
    assert struct.unpack(">II", raster.png(svg)[16:24]) == (1200, 630)


def test_a_locked_achievement_has_no_card(snapshot: dict[str, Any]) -> None:
    locked = next(
        achievement for achievement in snapshot["achievements"] if not achievement["unlocked"]
    )
    with pytest.raises(UsageError, match="not unlocked yet"):
        export.card(locked, CATALOGUE)


@pytest.mark.parametrize("text", ["\x00\x08 \ud800 \ufffe", "世界 🎉", "Größe ½"])
def test_any_text_can_be_drawn(text: str, snapshot: dict[str, Any]) -> None:
    result = {**snapshot["achievements"][0], "name": text, "description": text * 20}
    svg = export.card(result, CATALOGUE)
    parse_svg(svg)
    assert raster.png(svg).startswith(b"\x89PNG")
