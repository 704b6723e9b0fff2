"""`hermes sessions browse`, key by key, with the terminal double of Textual."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from hermes_cli.commands.sessions import browser
from hermes_cli.commands.sessions.browser import (
    BrowserApp,
    BrowserSessions,
    MessageHit,
    Preview,
    RowCatalogue,
    RowEntry,
    RowList,
    preview_pieces,
)
from hermes_core.terminal_text import width
from hermes_state import SessionDB
from support.rows import listed_session, message_row, session_row
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

pytestmark = pytest.mark.clock

WIDE, NARROW, SMALL = (120, 30), (70, 24), (40, 12)
NO_FILTERS: dict[str, Any] = {}


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    """Twelve conversations; talk11 is the latest."""
    now = time.time()
    with SessionDB() as store:
        for number in range(12):
            name, at = f"talk{number:02}", now - 3600 * (12 - number)
            store.create_session(name, "telegram" if number % 2 else "cli", started_at=at)
            store.append_message(name, "user", f"question {number} 图片", timestamp=at)
            store.append_message(name, "assistant", f"answer word{number}", timestamp=at)
        store.set_session_title("talk03", "Trip to Oslo")
        yield store


@pytest.fixture
def picker(db: SessionDB) -> BrowserApp:
    return BrowserApp(BrowserSessions(db, NO_FILTERS, lambda _db: None))


def entries(app: BrowserApp) -> list[str]:
    return [entry.row.id for entry in app.query_one(RowList)._entries]


def selected(app: BrowserApp) -> str:
    entry = app.query_one(RowList).selected
    return entry.row.id if entry else ""


def status(app: BrowserApp) -> str:
    return str(app.query_one("#status").render())


def preview(app: BrowserApp) -> str:
    return str(app.query_one("#ending").render())


async def wait_for(pilot: Pilot[Any], is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        await pilot.pause(0.02)


async def wait_until_settled(pilot: Pilot[Any]) -> None:
    await wait_for(pilot, lambda: "…" not in status(pilot.app).partition("conv")[0])  # type: ignore[arg-type]


async def test_the_latest_is_selected_and_enter_chooses_it(picker: BrowserApp) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        assert entries(picker)[:2] == ["talk11", "talk10"]
        await pilot.press("down", "enter")
    assert picker.return_value is not None
    assert picker.return_value.id == "talk10"


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "ctrl+q"])
async def test_leaving_chooses_nothing(picker: BrowserApp, key: str) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        await pilot.press(key)
    assert picker.return_value is None
    assert picker.return_code == 0


async def test_keys_move_and_stop_at_the_ends(picker: BrowserApp) -> None:
    async with picker.run_test(size=SMALL) as pilot:
        for key, expected in (
            ("up", "talk11"), ("down", "talk10"), ("end", "talk00"), ("down", "talk00"),
            ("home", "talk11"), ("pagedown", "talk02"), ("pageup", "talk11"),
        ):  # fmt: skip
            await pilot.press(key)
            assert selected(picker) == expected, key


async def test_typing_narrows_at_once_by_title_id_and_preview(picker: BrowserApp) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        await pilot.press(*"OSLO")
        assert entries(picker) == ["talk03"]
        assert "1 of 12" in status(picker)
        picker.query_one(Input).value = "talk0 question"
        await pilot.pause()
        assert len(entries(picker)) == 10
    assert picker.return_value is None


async def test_matching_messages_are_listed_below(picker: BrowserApp) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        await pilot.press(*"word7")
        assert entries(picker) == []
        await wait_for(pilot, lambda: entries(picker) == ["talk07"])
        await pilot.press("enter")
    assert picker.return_value is not None
    assert picker.return_value.id == "talk07"


async def test_the_preview_shows_the_end_of_the_selected_session(picker: BrowserApp) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        await wait_for(pilot, lambda: "answer word11" in preview(picker))
        await pilot.press("down")
        await wait_for(pilot, lambda: "answer word10" in preview(picker))
        await pilot.press(*"nothing like it")
        await wait_for(pilot, lambda: not preview(picker))


async def test_tab_goes_to_the_preview_and_back(picker: BrowserApp, db: SessionDB) -> None:
    db.append_message("talk11", "assistant", "\n".join(f"line {n}" for n in range(200)))
    async with picker.run_test(size=WIDE) as pilot:
        pane = picker.query_one(Preview)
        await wait_for(pilot, lambda: pane.scroll_y > 100)
        await pilot.press("tab", "home")
        assert pane.has_focus
        assert pane.scroll_y == 0
        await pilot.press("down", "down", "pagedown")
        assert pane.scroll_y > 2
        assert selected(picker) == "talk11"
        await pilot.press("end", "tab", "down")
        assert selected(picker) == "talk10"


@pytest.mark.parametrize(
    ("size", "is_beside", "is_below"),
    [(WIDE, True, False), (NARROW, False, True), (SMALL, False, False)],
)
async def test_the_preview_is_shown_where_it_fits(
    picker: BrowserApp, size: tuple[int, int], is_beside: bool, is_below: bool
) -> None:
    async with picker.run_test(size=size) as pilot:

        def is_placed() -> bool:
            rows, pane = picker.query_one(RowList).region, picker.query_one(Preview).region
            positions = pane.x > rows.x, pane.y > rows.y, bool(pane.area)
            return positions == (is_beside, is_below, is_beside or is_below)

        await wait_for(pilot, is_placed)
        await pilot.press("tab")
        await pilot.pause()
        assert picker.query_one(Preview).region.area
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        assert picker.query_one(RowList).region.area


async def test_trashing_asks_for_confirmation(picker: BrowserApp, db: SessionDB) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        await wait_until_settled(pilot)
        for answer in ("n", "escape", "enter", "x"):
            await pilot.press("ctrl+d")
            assert "to the trash? [y/N]" in status(picker)
            await pilot.press(answer)
            assert "[y/N]" not in status(picker)
        assert db.trash.content() == []
        assert picker.query_one(Input).value == ""
        await pilot.press("ctrl+d", "y")
        await wait_for(pilot, lambda: "talk11" not in entries(picker))
        assert [row.session_id for row in db.trash.content()] == ["talk11"]
        assert "moved to the trash" in status(picker)
        assert selected(picker) == "talk10"


async def test_plugins_are_notified_of_trashed_conversations(db: SessionDB) -> None:
    results: list[SessionDB] = []
    picker = BrowserApp(BrowserSessions(db, NO_FILTERS, results.append))
    async with picker.run_test(size=WIDE) as pilot:
        await pilot.press("ctrl+d", "y")
        await wait_for(pilot, lambda: bool(results))


async def test_pinning_and_unpinning(picker: BrowserApp, db: SessionDB) -> None:
    async with picker.run_test(size=WIDE) as pilot:
        await wait_until_settled(pilot)
        await pilot.press("ctrl+t")
        await wait_for(pilot, lambda: "pinned" in status(picker))
        assert db.list_sessions_rich(id_query="talk11")[0]["pinned"]
        assert picker.query_one(RowList).render_line(1).text.startswith("*")
        await pilot.press("ctrl+t")
        await wait_for(pilot, lambda: "unpinned" in status(picker))


async def test_archived_sessions_are_listed_on_request(picker: BrowserApp, db: SessionDB) -> None:
    db.set_session_archived("talk10")
    async with picker.run_test(size=WIDE) as pilot:
        await pilot.press("down")
        assert selected(picker) == "talk09"
        await pilot.press("ctrl+a")
        assert entries(picker)[1] == "talk10"
        assert selected(picker) == "talk09"
        assert picker.query_one(RowList).render_line(2).text.startswith("-")
        await pilot.press("ctrl+a")
        assert "talk10" not in entries(picker)


@pytest.mark.parametrize("key", ["f1", "question_mark"])
async def test_help_is_a_key_away(picker: BrowserApp, key: str) -> None:
    async with picker.run_test(size=SMALL) as pilot:
        await wait_until_settled(pilot)
        await pilot.press(key)
        await pilot.pause()
        assert "Ctrl+D" in status(picker)
        assert picker.query_one(Input).value == ""


async def test_failures_are_reported(db: SessionDB) -> None:
    with SessionDB(read_only=True) as reading:
        picker = BrowserApp(BrowserSessions(reading, NO_FILTERS, lambda _db: None))
        async with picker.run_test(size=WIDE) as pilot:
            await wait_until_settled(pilot)
            await pilot.press("ctrl+t")
            await wait_for(pilot, lambda: "Cannot pin" in status(picker))
            assert selected(picker) == "talk11"


async def test_an_empty_list_is_not_an_error(hermes_home: Path) -> None:
    with SessionDB() as store:
        picker = BrowserApp(BrowserSessions(store, NO_FILTERS, lambda _db: None))
        async with picker.run_test(size=WIDE) as pilot:
            await pilot.press("down", "end", "ctrl+t", "ctrl+d", "enter", "tab", "x")
            await pilot.press("escape")
    assert picker.return_value is None


async def test_stored_text_is_inert(db: SessionDB) -> None:
    evil = "[bold red]x[/] [@click=app.quit]y[/] \x1b]0;owned\x07 \x1b[2J \u202ez"
    db.create_session("evil", "cli[blink]")
    db.append_message("evil", "user", evil, timestamp=time.time())
    db.append_message("evil", "assistant", "", timestamp=time.time(),
                      tool_calls=[{"function": {"name": "[red]t", "arguments": evil}}])  # fmt: skip
    picker = BrowserApp(BrowserSessions(db, NO_FILTERS, lambda _db: None))
    async with picker.run_test(size=WIDE) as pilot:
        await wait_for(pilot, lambda: "[@click=app.quit]y[/]" in preview(picker))
        rendered = picker.query_one(RowList).render_line(1).text + preview(picker)
        assert "[bold red]x[/]" in rendered
        assert not {"\x1b", "\x07", "\u202e"} & set(rendered)
        await pilot.press("ctrl+d")
        assert "[bold red]x[/]" in status(picker)


async def test_many_rows_are_loaded_in_pages_and_only_visible_ones_are_rendered(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_cli.commands.sessions.browser.FIRST_ROWS", 3)
    monkeypatch.setattr("hermes_cli.commands.sessions.browser.PAGE_ROWS", 4)
    rendered: list[str] = []
    monkeypatch.setattr(
        "hermes_cli.commands.sessions.browser.line",
        lambda entry, cells, now: rendered.append(entry.row.id) or "x" * cells,
    )
    picker = BrowserApp(BrowserSessions(db, NO_FILTERS, lambda _db: None))
    async with picker.run_test(size=(40, 6)) as pilot:
        await wait_until_settled(pilot)
        assert entries(picker) == [f"talk{number:02}" for number in range(11, -1, -1)]
        assert "talk02" not in rendered


texts = st.text(max_size=60)
cells = st.integers(20, 200)


@given(texts, texts, texts, cells)
def test_every_line_fills_its_cells_exactly(
    title: str, source: str, match_text: str, columns: int
) -> None:
    row = listed_session("x", title=title, source=source, last_active=1.0, message_count=10**7)
    text = browser.line(RowEntry(row, match_text), columns, now=2.0)
    assert "\n" not in text
    assert "\x1b" not in text
    assert width(browser.heading(columns)) == columns
    if "\u200d" not in text and "\ufe0f" not in text:  # joined signs: terminals differ
        assert width(text) == columns


@given(st.lists(texts, max_size=8), texts)
def test_all_matches_are_found_in_order(titles: list[str], typed: str) -> None:
    catalogue = RowCatalogue()
    rows = [listed_session(f"id{number}", title=title) for number, title in enumerate(titles)]
    catalogue.add(rows)
    catalogue.add(rows)
    terms = typed.casefold().split()
    expected = [
        row.id
        for row in rows
        if all(word in f"{row.id}\n{row.session.title}\n".casefold() for word in terms)
    ]
    assert [entry.row.id for entry in catalogue.entries(typed)] == expected


def test_matches_are_listed_once_and_only_for_known_rows() -> None:
    catalogue = RowCatalogue()
    catalogue.add([listed_session("a", title="word"), listed_session("b", title="other")])
    hits = [MessageHit("b", "a word"), MessageHit("a", "word"), MessageHit("gone", "word")]
    assert [(entry.row.id, entry.snippet) for entry in catalogue.entries("word", hits)] == [
        ("a", ""),
        ("b", "a word"),
    ]


def test_long_messages_are_cut_in_the_preview() -> None:
    rendered = preview_pieces(
        session_row("x"), [message_row(role="tool", content="z" * 10_000, tool_name="t")]
    )
    assert sum(len(text) for text, _style in rendered) < 1000
