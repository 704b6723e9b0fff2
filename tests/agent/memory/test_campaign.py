"""Of 200 proposed facts, those are stored that the user has stated, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.memory import campaign

if TYPE_CHECKING:
    from pathlib import Path


def test_reviews_store_what_the_user_stated_and_nothing_else(tmp_path: Path) -> None:
    true = campaign.true_cases()
    assert (len(true), len(campaign.false_cases(true))) == (100, 100)
    outcome = campaign.run(tmp_path)
    assert outcome.kept == 101
    assert set(outcome.false.values()) == {0}
    assert (outcome.superseded, outcome.foreign) == (5, 0)
