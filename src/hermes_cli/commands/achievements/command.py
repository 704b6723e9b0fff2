"""`hermes achievements`: list and manage achievements."""

from __future__ import annotations

import calendar
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from hermes_achievements.evaluation import views
from hermes_achievements.evaluation.standings import STATES
from hermes_achievements.evaluation.views import SessionTitles, with_titles
from hermes_cli import history
from hermes_cli.commands.achievements import display, report
from hermes_cli.commands.achievements.display import (
    Tiers,
    amount_text,
    cell,
    find_achievement,
    name_cells,
    print_line,
    show,
)
from hermes_cli.commands.achievements.overview import overview, step_as_dict
from hermes_cli.commands.achievements.report import new_unlocks, open_report, tiers_by_id
from hermes_cli.filters import TIME_FORMATS, parse_positive, parse_time
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation import achievements
from hermes_core import human_format
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_achievements.evaluation.snapshot import (
        AchievementView,
        Announcement,
        Snapshot,
        TimelineStep,
    )
    from hermes_achievements.service import AchievementService
    from hermes_cli.commands.achievements.report import AchievementReport
    from hermes_cli.output import CommandOutput


def watch(arguments: argparse.Namespace, out: CommandOutput) -> NoReturn:
    """Scan repeatedly and print new unlocks until Ctrl+C."""
    if not achievements.is_enabled():
        raise UsageError(report.DISABLED)
    _wait_for_history(arguments.interval, out)
    try:
        with open_report(out) as look:
            _print(look.news, arguments, out)
            _follow(look, arguments, out)
    finally:
        out.progress("")


def _follow(look: AchievementReport, arguments: argparse.Namespace, out: CommandOutput) -> NoReturn:
    snapshot, problem = look.snapshot, ""
    while True:
        _show_state(snapshot, out)
        out.flush()
        time.sleep(arguments.interval)
        now = _scan_again(look.service) or snapshot
        _print(new_unlocks(tiers_by_id(snapshot), now), arguments, out)
        snapshot = now
        problem = _report_problem(look.service, problem, out)


def _wait_for_history(interval: float, out: CommandOutput) -> None:
    if history.exists():
        return
    out.note(f"{history.no_history_text()} Waiting for the first one. Press Ctrl+C to stop.")
    while not history.exists():
        time.sleep(interval)


def _scan_again(service: AchievementService) -> Snapshot | None:
    """Scan; return the snapshot, or the current one if another process is scanning."""
    source = achievements.source()
    result = service.run(source, service.compute, publish=False) or service.current()
    return None if result is None else with_titles(result, SessionTitles(source.open_history))


def _report_problem(service: AchievementService, before: str, out: CommandOutput) -> str:
    """Report a new scan failure once; return it."""
    problem = service.status.facts().last_error or ""
    if problem and problem != before:
        out.progress("")
        out.note(f"Scanning the history failed: {problem}")
    return problem


def _show_state(snapshot: Snapshot, out: CommandOutput) -> None:
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    out.progress(f"Watching: {unlocked} of {total} earned (Ctrl+C stops)")


def _print(found: Announcement, arguments: argparse.Namespace, out: CommandOutput) -> None:
    if found["count"]:
        out.progress("")
    unlocks = sorted(found["unlocks"], key=lambda unlock: float(unlock["at"]))
    if arguments.json:
        for unlock in unlocks:
            out.json_line(report.unlock_as_dict(unlock))
        return
    if found["is_first_scan"] and found["count"]:
        out.text(display.notice_text(found), "yellow")
        return
    for unlock in unlocks:
        result: Announcement = {**found, "unlocks": [unlock], "count": 1}
        where = report.conversation_name(unlock)
        out.styled(
            (f"{human_format.local(unlock['at'])}  ", "dim"),
            (display.notice_text(result), "yellow"),
            (f"  {where}" if where else "", ""),
        )


EXAMPLES = """\
examples:
  hermes achievements                          show an overview
  hermes achievements list --state unlocked --sort unlocked_at --order desc
  hermes achievements show first-words
  hermes achievements timeline --since 1w
  hermes achievements list --source claude-code
  hermes achievements export earned.png

Achievements are computed locally from your history; nothing is sent anywhere.
"""
HIDDEN_SETTING = "achievements.hidden"
SCAN_FIELDS = ("mode", "sessions_total", "sessions_rescanned", "sessions_reused")
BUSY = "busy"  # another process is scanning
READ_ONLY = "read_only"  # HERMES_HOME is not writable
SOURCE_HELP = "earned in conversations of a source: cli, codex, …"
INTERRUPTED = "Interrupted. The next scan continues from here."
COLUMNS = (
    TableColumn("id", style="cyan"),
    TableColumn("name", optional=True),
    TableColumn("tier"),
    TableColumn("next", right=True),
    TableColumn("progress", optional=True, flexible=True),
    TableColumn("what", optional=True, flexible=True, least=20, style="dim"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions; without one, the overview is printed."""
    parser.set_defaults(run=overview)
    add_json_option(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _configure_list(actions)
    _configure_named(actions)
    _configure_scans(actions)
    timeline = add_command(
        actions, "timeline", "list unlocks and tiers in the order they were earned",
        "hermes achievements timeline", "hermes achievements timeline --since 2026-01-01 --json",
        run=print_timeline,
    )  # fmt: skip
    timeline.add_argument(
        "--limit", type=parse_positive, metavar="N", help="show only the latest N"
    )
    timeline.add_argument(
        "--since", type=parse_time, metavar="WHEN", help=f"earned since: {TIME_FORMATS}"
    )
    timeline.add_argument("--source", help=SOURCE_HELP)
    add_json_option(timeline)
    exporting = add_command(
        actions, "export", "export achievements to a file, without conversation titles",
        "hermes achievements export earned.svg", "hermes achievements export --format json",
        run=export,
    )  # fmt: skip
    exporting.add_argument("file", metavar="FILE", nargs="?", default=STDOUT,
                        help="file, folder, or - for standard output (default)")  # fmt: skip
    exporting.add_argument("--format", choices=FORMATS,
                        help="format (default: by the suffix of FILE, else markdown)")  # fmt: skip
    exporting.add_argument("--force", action="store_true", help="replace an existing file")
    add_json_option(exporting)


def _configure_list(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        actions, "list", "list all achievements with progress",
        "hermes achievements list --category shell",
        "hermes achievements list --sort progress --order desc --limit 10", run=print_list,
    )  # fmt: skip
    parser.add_argument("--state", choices=(views.ALL_FILTER, *STATES), default=views.ALL_FILTER,
                        help="filter by state")  # fmt: skip
    parser.add_argument(
        "--category", metavar="ID", default=views.ALL_FILTER, help="filter by category"
    )
    parser.add_argument("--source", help=SOURCE_HELP)
    parser.add_argument(
        "--sort", choices=tuple(views.SORT_KEYS), help="sort key (default: category)"
    )
    parser.add_argument(
        "--order", choices=views.SORT_ORDERS, default="asc", help="sort order (default: asc)"
    )
    parser.add_argument("--limit", type=parse_positive, metavar="N", help="maximum number")
    add_json_option(parser)


def _configure_named(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for name, purpose, run in (
        ("show", "show the details of an achievement", show),
        ("hide", "hide an achievement", hide),
        ("unhide", "show a hidden achievement again", unhide),
    ):
        action = add_command(
            actions, name, purpose, f"hermes achievements {name} first-words", run=run
        )
        action.add_argument("id", metavar="ID", help="ID, as shown by `hermes achievements list`")
        add_json_option(action)


def _configure_scans(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    again = add_command(
        actions, "rescan", "scan the history and report new achievements",
        "hermes achievements rescan", "hermes achievements rescan --full", run=rescan,
    )  # fmt: skip
    again.add_argument("--full", action="store_true", help="scan the complete history again")
    add_json_option(again)
    follow = add_command(
        actions, "watch", "print new unlocks as they happen", "hermes achievements watch",
        run=watch,
    )  # fmt: skip
    follow.add_argument("--interval", type=parse_positive, default=2, metavar="SECONDS",
                        help="scan interval (default: 2)")  # fmt: skip
    follow.add_argument("--json", action="store_true", help="output one JSON object per line")


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the matching achievements."""
    with report.open_report(out) as look:
        rows = views.filter_achievements(
            look.earned_in(arguments.source),
            look.catalogue,
            state=arguments.state,
            category=arguments.category,
            sort=arguments.sort,
            order=arguments.order,
            limit=arguments.limit,
        )
        if arguments.json:
            out.json([report.public_fields(row) for row in rows])
        elif rows:
            tiers = Tiers(look.catalogue)
            out.table(COLUMNS, [_row(row, tiers) for row in rows])
        else:
            out.text("No matching achievements.")
        if not look.has_history:
            out.note(history.no_history_text())
    return 0


def _row(one: AchievementView, tiers: Tiers) -> tuple[str, ...]:
    if not one["discovered"]:
        return one["id"], one["name"], "", "", "", one.get("hint", "")
    percent = f"{one['progress_pct']} %" if one["next_tier"] else "done"
    return (
        one["id"],
        one["name"],
        tiers.name(one["tier"]),
        percent,
        amount_text(one),
        one["description"],
    )


def rescan(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Scan the history and print new achievements."""
    began = time.monotonic()
    try:
        with report.open_report(out, full=arguments.full) as look:
            _report(look, time.monotonic() - began, arguments, out)
    except KeyboardInterrupt:
        out.note(INTERRUPTED)
        raise
    return 0


def _report(
    look: AchievementReport, seconds: float, arguments: argparse.Namespace, out: CommandOutput
) -> None:
    snapshot, meta = look.snapshot, look.snapshot["scan_meta"]
    if arguments.json:
        counts = {
            "unlocked_count": snapshot["unlocked_count"],
            "discovered_count": snapshot["discovered_count"],
            "secret_count": snapshot["secret_count"],
            "total_count": snapshot["total_count"],
        }
        facts = {"seconds": round(seconds, 3), **counts, "new": _unlocks(look)}
        out.json({**_scan_summary(look), **facts})
        return
    if not look.has_history:
        out.text(history.no_history_text())
        return
    earned = f"{snapshot['unlocked_count']} of {snapshot['total_count']} earned"
    if look.is_earlier:
        then = human_format.local(snapshot["generated_at"])
        out.text(f"No scan was made. As of {then}: {earned}.")
        return
    read = human_format.number(meta.get("sessions_rescanned", 0))
    sessions = human_format.plural(meta["sessions_total"], "session")
    out.text(f"{sessions}, {read} scanned in {seconds:.1f} s; {earned}.")
    if not look.news["count"]:
        out.text("No new achievements.")
    elif report.wants_notices():
        out.text(display.notice_text(look.news), "yellow")


def _scan_summary(look: AchievementReport) -> dict[str, object]:
    """The summary of the scan; empty if another process was scanning."""
    meta = look.snapshot["scan_meta"]
    result: dict[str, object] = {name: meta.get(name) for name in SCAN_FIELDS}
    if look.is_earlier:
        mode = BUSY if look.source and look.source.is_shareable else READ_ONLY
        result |= {"mode": mode, "sessions_rescanned": 0, "sessions_reused": 0}
    return result


def _unlocks(look: AchievementReport) -> list[dict[str, object]]:
    return [report.unlock_as_dict(unlock) for unlock in look.news["unlocks"]]


def print_timeline(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print unlocks and tiers by month."""
    with report.open_report(out) as look:
        steps = [
            step
            for step in look.steps_in(arguments.source)
            if arguments.since is None or step["at"] >= arguments.since
        ]
        steps = steps[-arguments.limit :] if arguments.limit else steps
        if arguments.json:
            out.json([step_as_dict(step) for step in steps])
        elif not look.has_history:
            out.text(history.no_history_text())
        elif not steps:
            out.text(_nothing_text(arguments))
        else:
            _print_months(steps, look, out)
    return 0


def _nothing_text(arguments: argparse.Namespace) -> str:
    if arguments.source:
        return "No matching achievements."
    return "No achievements in this period." if arguments.since else "No achievements yet."


def _print_months(steps: list[TimelineStep], look: AchievementReport, out: CommandOutput) -> None:
    tiers = Tiers(look.catalogue)
    names = name_cells(out, (step["name"] for step in steps))
    for number, (month, group) in enumerate(groupby(steps, key=_month)):
        if number:
            out.text()
        out.text(month, "bold")
        for step in group:
            sign = display.STAR_SIGN if step["is_first"] else " "
            print_line(
                out,
                (f"  {human_format.local(step['at'])[:16]}  ", "dim"),
                (f"{sign} {cell(step['name'], names)}  ", ""),
                tiers.cell(step["tier"]),
                (f"  {report.conversation_name(step)}", "dim"),
            )


def _month(step: TimelineStep) -> str:
    year, _, rest = human_format.date(step["at"]).partition("-")
    return f"{calendar.month_name[int(rest[:2])]} {year}" if rest else human_format.UNKNOWN_TEXT


def hide(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Hide an achievement."""
    with report.open_report(out) as look:
        hidden = achievements.hidden_ids()
        name = arguments.id
        if name not in hidden:
            achievement = find_achievement(look, name)
            name = achievement["id"]
            if not achievement["discovered"]:
                raise UsageError(
                    f"'{name}' is a secret achievement; it can be hidden once it is discovered."
                )
            _set_hidden([*hidden, name])
    _report_hidden(arguments, f"{name} is now hidden.", out)
    return 0


def unhide(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Show a hidden achievement again."""
    hidden = list(achievements.hidden_ids())
    if arguments.id not in hidden:
        known = f" Hidden: {', '.join(hidden)}." if hidden else " No achievements are hidden."
        raise UsageError(f"'{arguments.id}' is not hidden.{known}")
    _set_hidden([item for item in hidden if item != arguments.id])
    _report_hidden(arguments, f"{arguments.id} is no longer hidden.", out)
    return 0


def _set_hidden(ids: list[str]) -> None:
    config = ConfigFile.of_home()
    try:
        config.set(HIDDEN_SETTING, ", ".join(ids)) if ids else config.unset(HIDDEN_SETTING)
    except OSError as error:
        raise UsageError(f"Cannot write the settings: {error}.") from error


def _report_hidden(arguments: argparse.Namespace, text: str, out: CommandOutput) -> None:
    if arguments.json:
        out.json({"hidden": list(achievements.hidden_ids())})
    else:
        out.text(text)


STDOUT: Final = "-"
IMAGE_FORMAT: Final = "png"
FORMATS: Final = ("json", "markdown", "svg", IMAGE_FORMAT)
SUFFIXES: Final = {
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".svg": "svg",
    ".png": IMAGE_FORMAT,
}


def export(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write the file, or print it."""
    from hermes_achievements.export import render  # noqa: PLC0415 - draws pictures
    from hermes_cli import output_files  # noqa: PLC0415 - as above

    form = _format(arguments)
    if arguments.file == STDOUT and arguments.json:
        raise UsageError("--json requires FILE: it describes the written file.")
    if arguments.file == STDOUT and form == IMAGE_FORMAT:
        raise UsageError("An image requires FILE, e.g. achievements.png.")
    with report.open_report(out) as look:
        result = render(look.snapshot, look.catalogue, form)
    if arguments.file == STDOUT:
        out.raw(result.content)
        return 0
    path = Path(arguments.file)
    if output_files.is_folder(arguments.file):
        path = output_files.unused_path(path, result.name)
    output_files.make_folder(path.parent)
    size = output_files.write(path, [result.content], is_replacing=arguments.force)
    if arguments.json:
        out.json({"file": str(path), "format": form, "bytes": size})
    else:
        out.text(f"{path}  {human_format.size(size)}")
    return 0


def _format(arguments: argparse.Namespace) -> str:
    """The requested format, or the one of the file suffix."""
    if arguments.format:
        return str(arguments.format)
    if arguments.file == STDOUT:
        return "markdown"
    suffix = Path(arguments.file).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"Unknown format of '{arguments.file}'. Pass --format {', '.join(FORMATS)}, "
            f"or use the suffix {', '.join(SUFFIXES)}."
        )
    return SUFFIXES[suffix]
