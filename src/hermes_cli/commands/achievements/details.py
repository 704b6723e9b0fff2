"""`hermes achievements show`: the details of an achievement."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Final

from hermes_achievements.evaluation.standings import SECRET
from hermes_cli.commands.achievements import report
from hermes_cli.commands.achievements.display import Tiers, amount_text, bar, bar_cells, print_line
from hermes_core import human_format
from hermes_core.command_name import command_name
from hermes_core.errors import UsageError
from hermes_core.terminal_text import one_line

if TYPE_CHECKING:
    import argparse

    from hermes_achievements.evaluation.snapshot import AchievementView, TierGoal, TierStep
    from hermes_cli.commands.achievements.report import AchievementReport
    from hermes_cli.output import CommandOutput


MAX_PROSE_COLUMNS: Final = 100
MAX_SUGGESTIONS: Final = 3


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print one achievement."""
    with report.open_report(out) as look:
        achievement = find_achievement(look, arguments.id)
        if arguments.json:
            out.json(report.public_fields(achievement))
        elif achievement["state"] == SECRET:
            _print_secret(achievement, out)
        else:
            _print(achievement, look, out)
    return 0


def find_achievement(look: AchievementReport, wanted: str) -> AchievementView:
    """Find an achievement by ID or name; a secret one only by its ID."""
    shown = look.snapshot["achievements"]
    for item in shown:
        if wanted == item["id"] or (item["state"] != SECRET and _is_name(item, wanted)):
            return item
    from hermes_conversation import achievements  # noqa: PLC0415 - only for what is not there

    if wanted in achievements.hidden_ids():
        raise UsageError(
            f"'{wanted}' is hidden. "
            f"Show it with `hermes achievements unhide {shlex.quote(wanted)}`."
        )
    proposals = suggestions(wanted, [item["id"] for item in shown])
    raise UsageError(f"Unknown achievement '{wanted}'.{proposals} See `hermes achievements list`.")


def _is_name(one: AchievementView, wanted: str) -> bool:
    return wanted.strip().casefold() == str(one["name"]).casefold()


def suggestions(wanted: str, known: list[str]) -> str:
    """A sentence with similar IDs, or ''."""
    import difflib  # noqa: PLC0415 - only a misspelt id needs it

    near = difflib.get_close_matches(wanted.lower().replace(" ", "-"), known, MAX_SUGGESTIONS)
    return f" Did you mean {', '.join(map(repr, near))}?" if near else ""


def _print_secret(one: AchievementView, out: CommandOutput) -> None:
    out.styled(("Secret", "bold"), (f"  {one['id']}", "dim"))
    _prose(one.get("hint", ""), out)
    out.text("The description appears once you make progress towards it.", "dim")


def _print(one: AchievementView, look: AchievementReport, out: CommandOutput) -> None:
    tiers = Tiers(look.catalogue)
    style = tiers.style(one["tier"])
    medal = tiers.cell(one["tier"]) if one["tier"] else ("", "")
    print_line(out, *bold(one["name"]), ("  ", ""), medal, (f"  {one['id']}", "dim"))
    _prose(one["description"], out)
    out.text()
    _prose(one["criteria"], out)
    chapters = {category.id: category.name for category in look.catalogue.categories}
    origin = "" if one.get("origin") == "hermes" else f", from the plugin {one.get('origin')}"
    print_line(out, (f"{chapters[one['category']]}: {_kind(one)}{origin}", "dim"))
    out.text()
    percent = one["progress_pct"]
    towards = f" to {tiers.name(one['next_tier'])}" if one["next_tier"] else ", complete"
    said = f"  {percent} %  {amount_text(one)}{towards}"
    print_line(out, *bar(percent, bar_cells(out, len(said)), style), (said, ""))
    out.text()
    steps = {step["tier"]: step for step in one.get("tier_history") or ()}
    for tier in one["tiers"]:
        _print_tier(one, tier, steps.get(tier["name"]), tiers, out)


def bold(text: str) -> tuple[tuple[str, str]]:
    """A bold piece of a line."""
    return ((one_line(text), "bold"),)


def _kind(one: AchievementView) -> str:
    from hermes_achievements.catalogue import ACHIEVEMENT_KINDS  # noqa: PLC0415 - `--help` does without

    return ACHIEVEMENT_KINDS.get(one["kind"], str(one["kind"]))


def _print_tier(
    one: AchievementView, tier: TierGoal, step: TierStep | None, tiers: Tiers, out: CommandOutput
) -> None:
    """Print a tier: its threshold, and when and where it was reached."""
    needed = f"  {human_format.number(tier['threshold'])} {one['unit']}"
    medal = tiers.cell(tier["name"], is_held=step is not None)
    if step is None:
        print_line(out, medal, (needed, "dim"))
        return
    print_line(out, medal, (needed, ""), (f"  {human_format.local(step['at'])}", "dim"))
    if step["session_id"] is None:
        return
    indent = " " * (tiers.widest + 4)
    message = "" if step.get("message_id") is None else f"  message {step['message_id']}"
    print_line(out, (f"{indent}{report.conversation_name(step)}", ""))
    if step.get("is_gone"):
        return
    command = f"{command_name()} sessions show {shlex.quote(one_line(step['session_id']))}"
    print_line(out, (indent, ""), (command, "cyan"), (message, "dim"))


def _prose(text: str, out: CommandOutput) -> None:
    """Print text wrapped to the width of the terminal."""
    if out.columns is None:
        out.text(text)
        return
    for part in textwrap.wrap(text, min(out.columns, MAX_PROSE_COLUMNS)):
        out.text(part)
