"""`hermes recap`, as a real process."""

from __future__ import annotations

import json
import re
import stat
import struct
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from hermes_cli.commands.achievements.scan_progress import progress_text
from hermes_core.terminal_text import width
from hermes_state import SessionDB
from hermes_state.ledger.file import LedgerFile
from support.terminal import spawn

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock

EVIL = "<script>alert(1)</script> & \x1b[31mred"
START = 1_772_355_600.0  # 2026-03-01 09:00 UTC


@pytest.fixture
def march_history(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conversation a day in the first days of March 2026; the last one has an odd title."""
    monkeypatch.setenv("TZ", "UTC")
    with SessionDB() as db:
        for day in range(4):
            name, moment = f"day-{day}", START + day * 86400
            db.create_session(name, "cli", model="gpt-5")
            for number in range(day + 2):
                db.append_message(
                    name, "user", content=f"{day} {number}", timestamp=moment + number * 60
                )
            function = {"name": "terminal", "arguments": '{"command": "git commit -m x"}'}
            db.append_message(
                name,
                "assistant",
                content="",
                tool_calls=[{"id": f"call-{day}", "type": "function", "function": function}],
                timestamp=moment + 900,
            )
        db.set_session_title("day-3", EVIL)
    return hermes_home


def test_the_last_month_with_data_is_shown(hermes: Hermes, march_history: Path) -> None:
    result = hermes("recap")
    assert (result.code, result.err) == (0, "")
    first, second, *_ = result.out.splitlines()
    assert first == "March 2026, the last month with activity"
    assert second == "1 to 31 March 2026 · active on 4 days of 31"
    assert "14 messages" in " ".join(result.out.split())
    assert "Your best day was Wednesday, 4 March: 5 messages and 1 tool call." in result.out
    assert "fewer ·░▒▓█ more" in result.out
    assert "terminal" in result.out
    assert "tiers reached" in result.out
    assert "\x1b" not in result.out


def test_a_year_is_a_strip_of_weeks(hermes: Hermes, march_history: Path) -> None:
    out = hermes("recap", "--year", "2026").out
    assert out.startswith("2026\n")
    assert re.search(r"^ +Jan +Feb +Mar", out, re.MULTILINE)
    assert re.search(r"^Mon +·+", out, re.MULTILINE)


def test_a_week_can_be_named(hermes: Hermes, march_history: Path) -> None:
    out = hermes("recap", "--week", "2026-W09").out
    assert out.startswith("Week 9 of 2026\n23 February to 1 March 2026 · active on 1 day of 7\n")


def test_json_for_programs(hermes: Hermes, march_history: Path) -> None:
    data = json.loads(hermes("recap", "--month", "2026-03", "--json").out)
    assert data["period"]["id"] == "2026-03"
    assert data["totals"]["commits"] == 4
    assert data["hours"][9] == 14
    assert data["longest_by_calls"]["session_id"].startswith("day-")
    assert data["tier_ups"]


def test_an_empty_home_is_reported(hermes: Hermes, hermes_home: Path) -> None:
    result = hermes("recap")
    assert (result.code, result.err) == (0, "")
    assert "No conversations to summarize" in result.out
    assert json.loads(hermes("recap", "--json").out) == {"period": None}
    assert list(hermes_home.iterdir()) == []


def test_a_history_without_messages_is_reported(hermes: Hermes, hermes_home: Path) -> None:
    with SessionDB() as db:
        db.create_session("nothing-said", "cli")
    result = hermes("recap", "--year")
    assert result.code == 0
    assert "No conversations to summarize" in result.out


def test_an_empty_period_links_to_one_with_data(
    hermes: Hermes, march_history: Path, tmp_path: Path
) -> None:
    result = hermes("recap", "--month", "2020-02", "--html", str(tmp_path / "x.html"))
    assert result.code == 0
    assert result.out == (
        "No activity in February 2020. Your history ranges from 1 March 2026 to 4 March 2026.\n"
    )
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("option", "value", "example"),
    [("--year", "26", "2026"), ("--month", "March", "2026-09"), ("--week", "9", "2026-W37")],
)
def test_a_bad_period_is_refused_with_an_example(
    hermes: Hermes, hermes_home: Path, option: str, value: str, example: str
) -> None:
    result = hermes("recap", option, value)
    assert result.code == 2
    assert result.err.startswith("hermes: ")
    assert example in result.err
    assert hermes("recap", "--year", "--month").code == 2


class StrictParser(HTMLParser):
    """Records open tags, and every URL that a browser would request."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.urls: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.names.add(tag)
        self.urls += [value for name, value in attrs if name in {"src", "href", "srcset"}]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_self_contained(hermes: Hermes, march_history: Path, tmp_path: Path) -> None:
    path = tmp_path / "march.html"
    result = hermes("recap", "--html", str(path))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{path}  ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    page = path.read_text("utf-8")
    parser = StrictParser()
    parser.feed(page)
    assert parser.open == []
    assert parser.urls == []
    assert not parser.names & {"script", "link", "img", "iframe"}
    assert "http:" not in page
    assert "https:" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert "<title>4 March 2026: 5 messages</title>" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in page
    ElementTree.fromstring(page.partition("\n")[2])  # noqa: S314 - our own page, as XML


def test_a_picture_is_drawn(hermes: Hermes, march_history: Path, tmp_path: Path) -> None:
    path = tmp_path / "march.png"
    assert hermes("recap", "--png", str(path)).code == 0
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    wide, tall = struct.unpack(">II", content[16:24])
    assert wide == 1200
    assert 1200 <= tall <= 1900


def test_nothing_is_overwritten(hermes: Hermes, march_history: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.html"
    path.write_text("precious")
    refused = hermes("recap", "--html", str(path))
    assert refused.code == 2
    assert "--force" in refused.err
    assert path.read_text() == "precious"
    assert hermes("recap", "--html", str(path), "--force").code == 0
    assert path.read_text().startswith("<!DOCTYPE html>")
    folder = tmp_path / "pages"
    folder.mkdir()
    hermes("recap", "--html", str(folder))
    hermes("recap", "--html", str(folder))
    names = sorted(item.name for item in folder.iterdir())
    assert names == ["hermes-recap-2026-03-2.html", "hermes-recap-2026-03.html"]


def test_disabled_achievements_are_not_computed(hermes: Hermes, march_history: Path) -> None:
    (march_history / "config.yaml").write_text("achievements:\n  enabled: false\n")
    result = hermes("recap")
    assert result.code == 0
    assert "14 messages" in " ".join(result.out.split())
    assert "reached" not in result.out
    assert not (march_history / "plugins").exists()


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize("period", ["--month", "--year"])
def test_it_fits_the_screen(
    march_history: Path, columns: int, period: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    output = on_terminal("recap", period, columns=columns)
    lines = [line.rpartition("\x1b[K")[2] for line in output.splitlines()]
    for line in lines:
        assert width(line) <= columns, line


@pytest.mark.usefixtures("march_history")
def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    output = on_terminal("recap", columns=80)
    assert "\x1b[1;32m██\x1b[0m" in output
    assert "\x1b[31m" not in output  # escape sequences in a title are printed as text


def on_terminal(*arguments: str, columns: int) -> str:
    child = spawn(*arguments, dimensions=(40, columns))
    output = str(child.read())
    child.close()
    assert child.exitstatus == 0, output
    return output


def test_the_progress_of_a_scan_is_one_line() -> None:
    assert progress_text(3, 1000, 400.0).endswith(" 3 of 1,000 sessions")
    assert progress_text(500, 1000, 4.2).endswith(" 500 of 1,000 sessions, about 4 s left")
    assert len(progress_text(99_999, 100_000, 100.0)) < 80


def test_while_another_process_scans_the_last_state_is_shown(
    hermes: Hermes, march_history: Path
) -> None:
    before = hermes("recap")
    ledger = LedgerFile(march_history / "state.db")
    with ledger.try_lock() as is_locked:
        assert is_locked
        result = hermes("recap")
    ledger.close()
    assert (result.code, result.out) == (0, before.out)
    assert "Another process is scanning" in result.err
