"""`hermes achievements watch` and the notices of new achievements."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from achievements.history_builder import HistoryBuilder
from hermes_cli.commands.achievements.display import notice_text
from support.command_line import command
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock


@pytest.fixture
def builder(hermes_home: Path) -> Iterator[HistoryBuilder]:
    """One conversation, in the test's own home."""
    assert hermes_home.is_dir()
    result = HistoryBuilder()
    result.start("first").send("hello")
    yield result
    result.close()


@contextlib.contextmanager
def watch_process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that watches; ended by Ctrl-C, quietly."""
    process = subprocess.Popen(
        command("achievements", "watch", "--interval", "1", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert errors == b""


def test_watching_prints_unlocks_as_they_happen(hermes: Hermes, builder: HistoryBuilder) -> None:
    assert hermes("achievements", "rescan").code == 0
    with watch_process() as process:
        assert process.stdout is not None
        time.sleep(1.5)
        for number in range(5):
            builder.start(f"watched{number}").send("look")
        lines = []
        while not any("★ Achievement: Open Doors (Clay)" in line for line in lines):
            lines.append(process.stdout.readline().decode())
            assert re.match(r"\d{4}-\d\d-\d\d ", lines[-1]), lines
        assert "\x1b" not in "".join(lines)


def test_watching_waits_for_a_history(hermes_home: Path) -> None:
    with watch_process("--json") as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert b"No conversations yet" in process.stderr.readline()
        builder = HistoryBuilder(hermes_home / "state.db")
        builder.start("first").send("hello")
        builder.close()
        assert json.loads(process.stdout.readline())["session_id"] == "first"


def unlock(name: str, tier: str = "clay") -> dict[str, str]:
    return {"id": name.lower(), "name": name, "tier": tier}


@pytest.mark.parametrize(
    ("unlocks", "is_first", "notice"),
    [
        ([], False, ""),
        ([unlock("First Words")], False, "★ Achievement: First Words (Clay)"),
        ([unlock("First Words")], True, "★ Achievement: First Words (Clay)"),
        (
            [unlock("A"), unlock("B", "bronze"), unlock("C")],
            False,
            "★ 3 achievements: B (Bronze), A (Clay), C (Clay)",
        ),
        (
            [*(unlock(name) for name in "ABCDEF"), unlock("G", "silver")],
            False,
            "★ 7 achievements: G (Silver), A (Clay), B (Clay) and 4 more",
        ),
        (
            [unlock(f"N{number}") for number in range(147)],
            True,
            "★ 147 achievements in your history. See `hermes achievements`.",
        ),
        ([unlock("Two\nlines \x1b[2J")], False, "★ Achievement: Two lines ␛[2J (Clay)"),
    ],
)
def test_a_notice_is_one_line(unlocks: list[dict[str, str]], is_first: bool, notice: str) -> None:
    result = {"unlocks": unlocks, "count": len(unlocks), "is_first_scan": is_first}
    assert notice_text(result) == notice
