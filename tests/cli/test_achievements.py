"""`hermes achievements …` as real processes, over histories written by `HistoryBuilder`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from achievements.history_builder import DAY, HistoryBuilder
from hermes_achievements.catalogue import load
from hermes_achievements.evaluation.standings import MESSAGES_SENT
from hermes_cli.commands.achievements.overview import streak_on
from hermes_core.terminal_text import width
from hermes_state.ledger.file import LedgerFile
from support.command_line import command
from support.tmux import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Finished, Hermes

TITLE = "Fixing the roof"
SHIP = "pytest && git commit -m x && git push"


@pytest.fixture
def builder(hermes_home: Path) -> Iterator[HistoryBuilder]:
    """Two conversations: one with work in it, and a titled one a month later."""
    assert hermes_home.is_dir()
    result = HistoryBuilder()
    result.start("roof").send("hello")
    for _ in range(12):
        result.run_shell(SHIP)
    result.wait(31 * DAY)
    result.start("later").send("and again")
    result.db.set_session_title("later", TITLE)
    result.reply()
    yield result
    result.close()


def achievements(hermes: Hermes, *arguments: str, **environment: str) -> Finished:
    result = hermes("achievements", *arguments, **environment)
    assert result.code == 0, result.err
    assert "Traceback" not in result.err
    return result


def as_json(hermes: Hermes, *arguments: str) -> Any:
    result = achievements(hermes, *arguments, "--json", HERMES_DISPLAY_COLOR="always")
    assert "\x1b" not in result.out
    return json.loads(result.out)


# Without anything to show


def test_without_a_history_it_is_friendly(hermes: Hermes, hermes_home: Path) -> None:
    for action in ([], ["timeline"], ["rescan"]):
        result = achievements(hermes, *action)
        assert "No conversations yet" in result.out
        assert result.err == ""
    listed = as_json(hermes, "list")
    assert {item["state"] for item in listed} == {"discovered", "secret"}
    assert as_json(hermes)["unlocked_count"] == 0
    assert as_json(hermes, "timeline") == []
    assert not (hermes_home / "state.db").exists()


def test_a_history_without_anything_earned(hermes: Hermes, hermes_home: Path) -> None:
    assert hermes_home.is_dir()
    HistoryBuilder().close()
    result = achievements(hermes)
    assert f"0 of {len(load())} earned" in result.out
    assert "Latest" not in result.out
    assert "No achievements yet" in achievements(hermes, "timeline").out


def test_switched_off_nothing_is_scanned(
    hermes: Hermes, hermes_home: Path, builder: HistoryBuilder
) -> None:
    builder.send()
    hermes("config", "set", "achievements.enabled", "false")
    result = achievements(hermes)
    assert "`hermes config set achievements.enabled true`" in result.out
    assert as_json(hermes) == {"enabled": False}
    for action in ("list", "rescan", "timeline", "watch", "export"):
        refused = hermes("achievements", action)
        assert refused.code == 2
        assert "disabled" in refused.err
    assert not (hermes_home / "statistics.db").exists()


# The overview


@pytest.mark.usefixtures("builder")
def test_the_overview_shows_all_figures(hermes: Hermes) -> None:
    first = achievements(hermes)
    assert re.match(r"★ \d+ achievements in your history", first.out)
    text = achievements(hermes).out
    assert text.startswith("Achievements  ")
    for arguments in (
        "secrets left",
        "Clay",
        "Streak",
        "The Shell",
        "Latest",
        "Within reach",
        " / ",
    ):
        assert arguments in text
    assert "\x1b" not in text
    assert TITLE in text


@pytest.mark.usefixtures("builder")
def test_the_overview_for_programs(hermes: Hermes) -> None:
    output = as_json(hermes)
    assert output["enabled"]
    assert output["total_count"] == len(load())
    assert sum(output["tiers"].values()) == output["unlocked_count"] > 5
    assert (
        sum(category["total_count"] for category in output["categories"]) == output["total_count"]
    )
    assert output["streaks"] == {"current_days": 0, "longest_days": 1, "active_days": 2}
    moments = [step["at"] for step in output["recent"]]
    assert moments == sorted(moments, reverse=True)
    assert len(output["within_reach"]) == 5
    assert "later" in {step["session_id"] for step in output["recent"]}


@pytest.mark.usefixtures("builder")
def test_notices_can_be_switched_off(hermes: Hermes) -> None:
    hermes("config", "set", "achievements.notify", "false")
    assert "★ Your history" not in achievements(hermes).out


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"COLORTERM": "truecolor", "TERM": "xterm"}, "\x1b[38;2;220;143;107m◆"),
        ({"COLORTERM": "", "TERM": "xterm-256color"}, "\x1b[38;5;"),
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, "\x1b[38;2;156;79;47m◆"),
    ],
)
def test_tiers_have_their_colours(hermes: Hermes, environment: dict[str, str], code: str) -> None:
    assert code in achievements(hermes, HERMES_DISPLAY_COLOR="always", **environment).out


@pytest.mark.usefixtures("builder")
def test_a_terminal_with_few_colours_gets_none_of_them(hermes: Hermes) -> None:
    few = {"HERMES_DISPLAY_COLOR": "always", "COLORTERM": "", "TERM": "xterm"}
    assert "\x1b[38" not in achievements(hermes, **few).out
    assert "\x1b" not in achievements(hermes, **few, NO_COLOR="1").out


@pytest.mark.clock
def test_the_streak_of_today() -> None:
    days = {f"2026-03-0{day}": {MESSAGES_SENT: 1} for day in (1, 2, 3, 5)}
    assert streak_on(days, "2026-03-05") == 4
    assert streak_on(days, "2026-03-06") == 4  # may still be continued
    assert streak_on(days, "2026-03-07") == 0  # a second missed day in a week
    assert streak_on({}, "2026-03-07") == 0


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.usefixtures("builder")
def test_on_a_terminal_nothing_is_wider_than_it(tmp_path: Path, columns: int) -> None:
    with Tmux(tmp_path, columns, 60) as terminal:
        for arguments in ([], ["list", "--limit", "9"], ["show", "first-words"], ["timeline"]):
            terminal.run(command("achievements", *arguments))
            screen = terminal.wait_for_end()
            lines = screen.splitlines()
            assert [line for line in lines if width(line) > columns] == []
            if not arguments:
                assert [line for line in lines if line.startswith("Achievements  ")]
                bars = [line for line in lines if line.startswith("  The Shell") and "━" in line]
                assert len(bars) == 1
                assert "◆ " in screen
                # Bars end in the same column, so nothing was wrapped.
                ends = {line.rfind("─") for line in lines if " of " in line and "─" in line}
                assert len(ends) == 1


# Lists and pages


@pytest.mark.usefixtures("builder")
def test_lists_can_be_chosen_and_sorted(hermes: Hermes) -> None:
    unlocked = as_json(hermes, "list", "--state", "unlocked", "--sort", "name")
    names = [item["name"].casefold() for item in unlocked]
    assert names
    assert names == sorted(names)
    ranked = as_json(hermes, "list", "--sort", "progress", "--order", "desc", "--limit", "7")
    assert [item["progress_pct"] for item in ranked] == [100] * 7
    shell = as_json(hermes, "list", "--category", "shell")
    assert {item["category"] for item in shell} == {"shell"}
    everything = as_json(hermes, "list")
    assert len({tuple(item) for item in everything}) == 1  # the same keys, for secrets too
    assert len(everything) == len(load())
    text = achievements(hermes, "list", "--state", "unlocked").out
    assert text.splitlines()[0].split() == ["id", "name", "tier", "next", "progress", "what"]
    assert "first-words" in text


@pytest.mark.usefixtures("builder")
def test_an_unknown_category_is_answered_with_the_available_ones(hermes: Hermes) -> None:
    result = hermes("achievements", "list", "--category", "nowhere")
    assert result.code == 2
    assert "accepted: all, conversation" in result.err


def test_a_page_leads_to_the_evidence(hermes: Hermes, builder: HistoryBuilder) -> None:
    rows = builder.db.get_messages("roof")
    output = as_json(hermes, "show", "first-words")
    assert (output["tier"], output["tier_history"][0]["session_id"]) == ("clay", "roof")
    assert output["tier_history"][0]["message_id"] == rows[0]["id"]
    assert output["unlocked_at"] == rows[0]["timestamp"]
    text = achievements(hermes, "show", "First Words").out
    for arguments in (
        "First Words  ◆ Clay    first-words",
        "The first message that you wrote.",
        "2 messages, complete",
        f"message {rows[0]['id']}",
        "hermes sessions show roof",
    ):
        assert arguments in text
    assert "hello" in hermes("sessions", "show", "roof").out


@pytest.mark.usefixtures("builder")
def test_a_page_of_something_unfinished(hermes: Hermes) -> None:
    text = achievements(hermes, "show", "well-spoken").out
    assert "messages to Clay" in text
    assert "◇ Aether" in text
    assert "━" in text


@pytest.mark.usefixtures("builder")
def test_an_unknown_id_gets_proposals(hermes: Hermes) -> None:
    result = hermes("achievements", "show", "first-word")
    assert result.code == 2
    assert "Unknown achievement 'first-word'. Did you mean 'first-words'" in result.err


@pytest.mark.usefixtures("builder")
def test_a_secret_shows_its_hint_and_nothing_else(hermes: Hermes) -> None:
    secret = as_json(hermes, "list", "--state", "secret")[0]
    number = int(secret["id"].removeprefix("secret-"))
    true = load().achievements[number - 1]
    text = achievements(hermes, "show", secret["id"]).out
    assert true.hint in text
    everything = text + json.dumps(secret) + achievements(hermes, "list").out
    for telling in (true.id, true.name, true.counts):
        assert telling not in everything
    assert hermes("achievements", "show", true.id).code == 2


# Scans


def test_a_rescan_reports_new_achievements(hermes: Hermes, builder: HistoryBuilder) -> None:
    first = as_json(hermes, "rescan")
    assert (first["mode"], first["sessions_total"]) == ("full", 2)
    assert {item["id"] for item in first["new"]} >= {"first-words"}
    assert "No new achievements." in achievements(hermes, "rescan").out
    for number in range(20):
        builder.start(f"more{number}").send("once more")
    result = achievements(hermes, "rescan")
    assert "22 sessions, 20 scanned" in result.out
    assert "★ " in result.out
    assert "Open Doors (Clay)" in result.out
    full = as_json(hermes, "rescan", "--full")
    assert (full["sessions_rescanned"], full["new"]) == (22, [])


def test_while_another_process_scans_the_last_snapshot_is_used(
    hermes: Hermes, hermes_home: Path, builder: HistoryBuilder
) -> None:
    before = as_json(hermes)
    builder.start("more").send("something new")
    ledger = LedgerFile(hermes_home / "state.db")
    with ledger.try_lock() as is_locked:
        assert is_locked
        result = achievements(hermes, "--json")
    ledger.close()
    assert "Another process is scanning" in result.err
    assert json.loads(result.out)["generated_at"] == before["generated_at"]


def in_the_middle_of_a_scan(home: Path) -> None:
    """As a ledger of an older release is while it is filled: with no complete sum in it."""
    ledger = LedgerFile(home / "state.db")
    ledger.save((), dict.fromkeys(ledger.notes(), None), 1)
    ledger.close()


@pytest.mark.usefixtures("builder")
def test_while_another_process_reads_everything_the_streak_is_left_out(
    hermes: Hermes, hermes_home: Path
) -> None:
    as_json(hermes)
    in_the_middle_of_a_scan(hermes_home)
    ledger = LedgerFile(hermes_home / "state.db")
    with ledger.try_lock():
        assert as_json(hermes)["streaks"]["current_days"] is None
        text = achievements(hermes).out
        recap = hermes("recap")
    ledger.close()
    assert "Streak  longest 1 day" in text
    assert recap.code == 1
    assert "Another process is scanning the history" in recap.err
    assert "Try again" in recap.err


def test_a_rescan_while_another_process_scans_claims_nothing(
    hermes: Hermes, hermes_home: Path, builder: HistoryBuilder
) -> None:
    known_names = as_json(hermes, "rescan")
    builder.start("more").send("something new")
    ledger = LedgerFile(hermes_home / "state.db")
    with ledger.try_lock():
        result = achievements(hermes, "rescan")
        report = as_json(hermes, "rescan")
    ledger.close()
    assert "Another process is scanning" in result.err
    assert "read in" not in result.out
    assert f"{known_names['unlocked_count']} of {known_names['total_count']} earned" in result.out
    assert (report["mode"], report["sessions_rescanned"]) == ("busy", 0)
    assert report["unlocked_count"] == known_names["unlocked_count"]


def test_a_deleted_conversation_is_not_listed(hermes: Hermes, builder: HistoryBuilder) -> None:
    assert TITLE in achievements(hermes, "timeline").out
    for session_id in ("later", "roof"):
        builder.db.delete_session(session_id)
        builder.db.trash.purge(session_id)
    for arguments in ([], ["timeline"], ["timeline", "--json"], ["list", "--json"]):
        assert TITLE not in achievements(hermes, *arguments).out
    page = achievements(hermes, "show", "first-words").out
    assert "hermes sessions show" not in page
    assert "hello" not in page
    assert "(deleted conversation)" in page


@pytest.mark.clock
@pytest.mark.usefixtures("builder")
def test_two_zones_do_not_make_two_histories(hermes: Hermes) -> None:
    assert as_json(hermes, "rescan")["mode"] == "full"
    for zone in ("Pacific/Kiritimati", "UTC"):
        result = achievements(hermes, "rescan", "--json", TZ=zone)
        assert json.loads(result.out)["mode"] == "incremental"


@pytest.mark.usefixtures("builder")
def test_a_rescan_can_be_interrupted(tmp_path: Path, hermes_home: Path) -> None:
    ledger = LedgerFile(hermes_home / "state.db")
    with Tmux(tmp_path, 80, 24) as terminal, ledger.try_lock():
        terminal.run(command("achievements", "rescan"))
        terminal.wait_for("Another process is scanning the history")
        terminal.press("C-c")
        screen = terminal.wait_for_end(code=130)
        assert "The next scan continues" in screen
        assert "Traceback" not in screen
    ledger.close()


# The timeline


@pytest.mark.clock
@pytest.mark.usefixtures("builder")
def test_the_timeline_is_grouped_by_month(hermes: Hermes) -> None:
    steps = as_json(hermes, "timeline")
    moments = [step["at"] for step in steps]
    assert moments == sorted(moments)
    text = achievements(hermes, "timeline").out
    assert text.index("January 2026\n") < text.index("February 2026\n")
    assert "★ First Words" in text
    assert as_json(hermes, "timeline", "--limit", "2") == steps[-2:]
    later = as_json(hermes, "timeline", "--since", "2026-02-01")
    assert later == [step for step in steps if step["session_id"] == "later"]
    assert "No achievements in this period" in achievements(hermes, "timeline", "--since", "1h").out


def test_a_source_has_the_achievements_that_its_conversations_earned(
    hermes: Hermes, builder: HistoryBuilder
) -> None:
    builder.start("codex-1", "codex", cwd="/home/ada/project").send("now with another agent")
    builder.start("sub", "subagent", parent_session_id="codex-1")
    for _ in range(100):  # more than the conversations of the terminal
        builder.run_shell(SHIP)
    everything = {each["id"]: each for each in as_json(hermes, "list")}
    steps = as_json(hermes, "timeline")
    of_codex = [step for step in steps if step["session_id"] in ("codex-1", "sub")]
    of_terminal = [step for step in steps if step["session_id"] in ("roof", "later")]
    assert of_codex
    assert of_terminal
    assert as_json(hermes, "timeline", "--source", "codex") == of_codex
    assert as_json(hermes, "timeline", "--source", "cli") == of_terminal
    listed = as_json(hermes, "list", "--source", "codex")
    assert {each["id"] for each in listed} == {step["id"] for step in of_codex}
    assert [each for each in listed if each != everything[each["id"]]] == []  # state, progress
    nothing = achievements(hermes, "list", "--source", "nowhere")
    assert nothing.out == "No matching achievements.\n"


# Files


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.json", b"{"), ("a.md", b"# "), ("a.svg", b"<svg"), ("a.png", b"\x89PNG")],
)
def test_the_file_name_sets_the_format(
    hermes: Hermes, tmp_path: Path, name: str, beginning: bytes
) -> None:
    path = tmp_path / "out" / name
    assert str(path) in achievements(hermes, "export", str(path)).out
    content = path.read_bytes()
    assert content.startswith(beginning)
    assert TITLE.encode() not in content  # the export is meant to be shared
    again = hermes("achievements", "export", str(path))
    assert again.code == 2
    assert "--force" in again.err
    report = as_json(hermes, "export", str(path), "--force")
    assert report["bytes"] == path.stat().st_size


@pytest.mark.usefixtures("builder")
def test_an_export_without_a_file_is_printed(hermes: Hermes) -> None:
    assert achievements(hermes, "export").out.startswith("# ")
    assert json.loads(achievements(hermes, "export", "--format", "json").out)["achievements"]
    refused = hermes("achievements", "export", "--format", "png")
    assert (refused.code, refused.out) == (2, "")
    assert "requires FILE" in refused.err
    unknown = hermes("achievements", "export", "earned.pdf")
    assert unknown.code == 2
    assert ".svg" in unknown.err


# Hiding


@pytest.mark.usefixtures("builder")
def test_hiding_and_showing_again(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("# mine\n")
    assert achievements(hermes, "hide", "First Words").out == "first-words is now hidden.\n"
    assert as_json(hermes, "hide", "first-words") == {"hidden": ["first-words"]}
    assert "first-words" not in {item["id"] for item in as_json(hermes, "list")}
    refused = hermes("achievements", "show", "first-words")
    assert refused.code == 2
    assert "unhide first-words" in refused.err
    assert as_json(hermes, "unhide", "first-words") == {"hidden": []}
    assert as_json(hermes, "show", "first-words")["tier"] == "clay"
    assert "# mine" in (hermes_home / "config.yaml").read_text()
    assert "No achievements are hidden" in hermes("achievements", "unhide", "first-words").err
    secret = as_json(hermes, "list", "--state", "secret")[0]["id"]
    assert "is a secret achievement" in hermes("achievements", "hide", secret).err
