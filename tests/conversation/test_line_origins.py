"""The conversation that wrote a line is named, and a person's line is never claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conversation import line_campaign
from hermes_state import SessionDB

if TYPE_CHECKING:
    from pathlib import Path


def test_agents_lines_are_named_and_no_line_of_a_person_is_claimed(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with SessionDB() as db:
        outcome = line_campaign.run(folder.resolve(), db, seed=4)
    assert outcome.person_lines > 50
    assert outcome.claimed == 0
    assert outcome.share >= line_campaign.MIN_SHARE
