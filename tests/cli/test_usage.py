"""`hermes usage`: what was used, and what it cost."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from hermes_core.clock import SystemClock
from hermes_state import SessionDB

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

DAY = 86_400


@pytest.fixture
def used(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Four conversations, of which one lasted two days; returns noon of the last day."""
    monkeypatch.setenv("TZ", "UTC")
    noon = SystemClock().now() // DAY * DAY - DAY / 2  # yesterday
    with SessionDB() as db:
        for name, source, model, folder, cost, moments in (
            ("one", "cli", "sonnet", "/work/tea", 1.0, (noon,)),
            ("two", "telegram", "gpt", "", 2.0, (noon - DAY, noon)),
            ("three", "cli", "gpt", "/work/tea/cups", 4.0, (noon - 40 * DAY,)),
            ("four", "cli", "sonnet", "/work/teapot", 8.0, (noon,)),
        ):
            db.create_session(
                name, source, model=model, cwd=folder or None, started_at=moments[0], is_owned=False
            )
            for moment in moments:
                db.append_message(name, "user", "hello", timestamp=moment)
            db.update_token_counts(name, 100, 10, cache_read_tokens=1000, estimated_cost_usd=cost)
    return noon


def usage(hermes: Hermes, *arguments: str) -> dict[str, tuple[int, float]]:
    """Conversations and cost by name."""
    result = hermes("usage", "--json", *arguments)
    assert (result.code, result.err) == (0, "")
    answer = json.loads(result.out)
    return {
        line["name"]: (line["conversations"], line["cost_usd"])
        for line in [*answer["lines"], answer["totals"]]
    }


def test_usage_is_summed_by_day_model_project_and_source(used: float, hermes: Hermes) -> None:
    last = date.fromtimestamp(used)  # noqa: DTZ012 - TZ is UTC here
    before = last - timedelta(days=1)
    assert usage(hermes) == {
        before.isoformat(): (1, 1.0),
        last.isoformat(): (3, 10.0),
        "total": (3, 11.0),
    }
    everything = ("--since", "60d")
    assert usage(hermes, "--by", "model", *everything) == {
        "sonnet": (2, 9.0), "gpt": (2, 6.0), "total": (4, 15.0),
    }  # fmt: skip
    assert usage(hermes, "--by", "project", *everything) == {
        "/work/teapot": (1, 8.0), "/work/tea/cups": (1, 4.0), "": (1, 2.0), "/work/tea": (1, 1.0),
        "total": (4, 15.0),
    }  # fmt: skip
    assert usage(hermes, "--by", "source", *everything)["telegram"] == (1, 2.0)
    assert usage(hermes, "--by", "month", *everything)["total"] == (4, 15.0)
    inside = usage(hermes, "--by", "source", "--dir", "/work/tea", *everything)
    assert inside == {"cli": (2, 5.0), "total": (2, 5.0)}
    assert usage(hermes, "--by", "source", "--model", "gp", *everything)["total"] == (2, 6.0)


def test_a_table_names_the_period_and_ends_with_totals(used: float, hermes: Hermes) -> None:
    lines = hermes("usage", "--by", "model").out.splitlines()
    assert lines[1].split() == [
        "model",
        "conversations",
        "input",
        "output",
        "from",
        "cache",
        "to",
        "cache",
        "cost",
    ]
    assert lines[-1].split() == ["total", "3", "300", "30", "3,000", "0", "$11.00"]


def test_a_period_without_usage_and_a_wrong_one_say_so(used: float, hermes: Hermes) -> None:
    empty = hermes("usage", "--since", "2001-01-01", "--until", "2001-02-01")
    assert empty.out == "2001-01-01 to 2001-02-01\nNo usage in this period.\n"
    wrong = hermes("usage", "--since", "2001-02-01", "--until", "2001-01-01")
    assert (wrong.code, wrong.err) == (
        2, "hermes: --since (2001-02-01) is after --until (2001-01-01).\n"
    )  # fmt: skip


def test_without_a_history_there_is_no_usage(hermes_home: Path, hermes: Hermes) -> None:
    assert json.loads(hermes("usage", "--json").out)["lines"] == []
    assert "No conversations yet" in hermes("usage").out


def test_sub_agents_are_counted_in_the_project_of_their_conversation(
    used: float, hermes: Hermes
) -> None:
    with SessionDB() as db:
        db.create_session(
            "helper", "subagent", parent_session_id="one", started_at=used, is_owned=False
        )
        db.append_message("helper", "user", "look", timestamp=used)
        db.update_token_counts("helper", 100, 10, estimated_cost_usd=0.5)
    assert usage(hermes, "--by", "project")["/work/tea"] == (1, 1.5)
    by_source = usage(hermes, "--by", "source")
    assert by_source["cli"] == (2, 9.5)
    assert "subagent" not in by_source


def test_an_exceeded_budget_is_told(used: float, hermes: Hermes) -> None:
    del used
    assert "Budget" not in hermes("usage").out
    with SessionDB() as db:
        now = SystemClock().now()
        db.create_session("now", "cli", started_at=now, is_owned=False)
        db.append_message("now", "user", "hello", timestamp=now)
        db.update_token_counts("now", 100, 10, estimated_cost_usd=100.0)
    assert hermes("config", "set", "display.dollars_per_month", "20").code == 0
    assert "of $20.00, exceeded" in hermes("usage").out
