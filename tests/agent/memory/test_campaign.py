"""Of 200 proposed facts, those are stored that the user has stated, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agent.memory import campaign


def test_reviews_store_what_the_user_stated_and_nothing_else(tmp_path: Path) -> None:
    true = campaign.true_cases()
    assert (len(true), len(campaign.false_cases(true))) == (100, 100)
    outcome = campaign.run(tmp_path)
    assert outcome.kept == 101
    assert set(outcome.false.values()) == {0}
    assert (outcome.superseded, outcome.foreign) == (5, 0)


def test_the_command_leaves_the_home_of_the_developer_alone(tmp_path: Path) -> None:
    tests, home = Path(__file__).parents[2], tmp_path / "developer"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(tests)}
    del environment["HERMES_HOME"]
    command = [sys.executable, "-m", "agent.memory.campaign"]
    subprocess.run(command, env=environment, cwd=home, check=True, stdout=subprocess.DEVNULL)
    assert list(home.iterdir()) == []
