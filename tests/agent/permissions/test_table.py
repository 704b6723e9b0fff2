"""Commands with their verdicts in every mode: verdicts.txt is the specification."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("verdicts.txt")


def rows():
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            workspace, full, plan, keys, command = line.split(maxsplit=4)
            yield pytest.param(workspace, full, plan, keys, command, id=command)


@pytest.mark.parametrize(
    ("workspace_says", "full_says", "plan_says", "keys", "command"), list(rows())
)
def test_a_command_gets_its_verdict(
    workspace_says,
    full_says,
    plan_says,
    keys,
    command,
    verdict,
    approvals,
    caller,
    hermes_home,
):
    if command.startswith("rg ") and shutil.which("rg") is None:
        pytest.skip("no rg (Debian package ripgrep): a missing program is asked for")
    text = command.replace("\\n", "\n").replace("$HERMES", str(hermes_home))
    said = [verdict(text), verdict(text, "full"), verdict(text, "plan")]
    assert said == [workspace_says, full_says, plan_says]
    if workspace_says == "ask":
        assert ",".join(approvals.command(text, caller).request.pattern_keys) == keys


def test_the_table_is_long_enough_to_mean_something():
    assert len(list(rows())) > 130
