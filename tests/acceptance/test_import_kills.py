"""Imports of other agents' histories that are killed at any moment and started again."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import size
from hermes_state import SessionDB
from support.claude_files import ClaudeFile
from support.command_line import command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CONVERSATIONS = size(300, 4000)
KILLS = size(5, 60)


def write_history(home: Path, numbers: random.Random) -> int:
    """Write conversations, each fifth a fork of the one before; the number of prompts."""
    prompts, before = 0, ClaudeFile(home)
    for number in range(CONVERSATIONS):
        file = ClaudeFile(home, cwd=f"/home/ada/{number % 7}", now=before.now + 100)
        if number % 5 == 4:
            text = before.path.read_text().replace(before.session_id, file.session_id)
            file.path.write_text(text)
        for _ in range(numbers.randint(1, 6)):
            prompts += 1
            file.exchange(f"question {prompts}", f"answer {prompts}")
        before = file
    return prompts


def test_imports_that_are_killed_store_everything_once(
    tmp_path: Path,
    hermes_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    figures: Callable[..., None],
) -> None:
    del hermes_home
    numbers = random.Random(18)
    home = tmp_path / "ada"
    monkeypatch.setenv("HOME", str(home))
    prompts = write_history(home, numbers)
    kills = Counter[bool]()
    for _ in range(KILLS):
        with subprocess.Popen(command("import", "--yes"), stdout=subprocess.DEVNULL) as process:
            time.sleep(numbers.uniform(0.2, 1.2))
            kills[process.poll() is None] += 1
            process.kill()
    subprocess.run(command("import", "--yes"), check=True, stdout=subprocess.DEVNULL)
    with SessionDB() as db:
        sessions = db.engine.read(lambda r: r.value("SELECT count(*) FROM sessions"))
        tokens = db.engine.read(lambda r: r.value("SELECT sum(input_tokens) FROM sessions"))
        texts = db.engine.read(
            lambda r: r.rows(
                "SELECT content FROM messages m WHERE role = 'user' AND NOT EXISTS"
                " (SELECT 1 FROM hermes_copy c WHERE c.message_id = m.id)"
            )
        )
        open_ones = db.engine.read(
            lambda r: r.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL")
        )
    counted = Counter(text for (text,) in texts)
    assert sessions == CONVERSATIONS
    assert len(counted) == prompts
    assert set(counted.values()) == {1}
    assert tokens == 10 * prompts
    assert open_ones == 0
    figures("imports", conversations=sessions, prompts=prompts, kills=kills[True], lost=0, twice=0)
