"""The campaign of failures with a known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conversation import fix_campaign
from hermes_state import SessionDB

if TYPE_CHECKING:
    from pathlib import Path


def test_hints_name_what_worked_and_stay_away_from_what_misleads(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        report = fix_campaign.run(db)
    assert len(report.given) >= 100
    assert report.precision >= 0.8
    assert report.recall >= 0.9
    wrong = {answer.kind for answer in report.answers if not answer.is_right}
    assert wrong.isdisjoint({"other chat", "first time", "same conversation", "other folder"})
