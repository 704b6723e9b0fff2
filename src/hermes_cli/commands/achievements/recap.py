"""`hermes recap`: summarize a year, a month or a week."""

from __future__ import annotations

import contextlib
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.recap import periods
from hermes_achievements.recap.periods import WEEKDAY_NAMES, long_date
from hermes_achievements.recap.sentences import figures, highlights, plural, summary
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_json_option
from hermes_core import human_format
from hermes_core.terminal_text import fit, one_line, pad, width

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.evaluation.snapshot import TimelineStep
    from hermes_achievements.recap.periods import Cell, Period
    from hermes_achievements.recap.recap import Recap, RecapCount, RecapTier
    from hermes_cli.output import CommandOutput

SHADES: Final = ("·", "░", "▒", "▓", "█")
STYLES: Final = ("dim", "green", "green", "green", "bold green")
EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
CHART_LINES: Final = 4  # height of the chart of hours
PAGE: Final = 80  # columns without a terminal
BAR_CELLS: Final = 24
FIGURE_COLUMNS: Final = 26  # columns of a figure
MAX_RANKED: Final = 5
MAX_TIERS: Final = 10


def show(recap: Recap, heading: str, catalogue: Catalogue, out: CommandOutput) -> None:
    """Print the recap."""
    columns = out.columns or PAGE
    out.text(textwrap.fill(heading, columns), "bold")
    out.text(textwrap.fill(summary(recap), columns), "dim")
    out.text()
    _figures(recap, columns, out)
    _days(recap, columns, out)
    _hours(recap, columns, out)
    _ranked("Weekdays", _weekdays(recap), columns, out)
    _ranked("Tools", recap.tools[:MAX_RANKED], columns, out)
    _ranked("Programs", recap.programs[:MAX_RANKED], columns, out)
    _ranked("Models, by messages", recap.models[:MAX_RANKED], columns, out)
    _sentences(highlights(recap), columns, out)
    _tier_ups(recap.tier_ups, catalogue, out)


def _title(words: str, out: CommandOutput) -> None:
    out.text()
    out.text(words, "bold")


def _figures(recap: Recap, columns: int, out: CommandOutput) -> None:
    shown = figures(recap)
    beside = min(3, max(1, columns // FIGURE_COLUMNS))
    for start in range(0, len(shown), beside):
        pieces = []
        for label, said in shown[start : start + beside]:
            pieces += [
                (pad(said, 11, right=True), "bold"),
                (" " + pad(label, FIGURE_COLUMNS - 12), ""),
            ]
        label, style = pieces[-1]
        out.styled(*pieces[:-1], (label.rstrip(), style))


def _days(recap: Recap, columns: int, out: CommandOutput) -> None:
    _title("Messages by day", out)
    cells = periods.cells(recap.days)
    if periods.is_strip(recap.days):
        _strip(cells, columns, out)
    elif columns >= 7 * 7:
        _calendar(cells, out)
    else:
        _strip(cells, columns, out)
    legend = [(shade, style) for shade, style in zip(SHADES, STYLES, strict=True)]
    out.styled(("     fewer ", "dim"), *legend, (" more", "dim"))


def _calendar(found: list[Cell], out: CommandOutput) -> None:
    """A calendar with a week per line."""
    out.text("     " + "  ".join(pad(name[:3], 5) for name in WEEKDAY_NAMES).rstrip(), "dim")
    for week in range(found[-1].week + 1):
        days = [cell for cell in found if cell.week == week]
        pieces = [(" " * (5 + 7 * days[0].weekday), "")]
        for cell in days:
            pieces += [(f"{int(cell.day[8:]):>2} ", "dim"), _shade(cell, 2), ("  ", "")]
        out.styled(*pieces[:-1])


def _strip(found: list[Cell], columns: int, out: CommandOutput) -> None:
    """A line per weekday and a column per week, as many as fit."""
    at_once = max(1, columns - 6)
    for first in range(0, found[-1].week + 1, at_once):
        part = [cell for cell in found if first <= cell.week < first + at_once]
        out.text("     " + _months(part, first), "dim")
        for number, name in enumerate(WEEKDAY_NAMES):
            row = {cell.week: cell for cell in part if cell.weekday == number}
            pieces = [
                _shade(row[week], 1) if week in row else (" ", "")
                for week in range(first, part[-1].week + 1)
            ]
            beside = name[:3] if number % 2 == 0 else ""
            out.styled((pad(beside, 5), "dim"), *pieces)


def _months(part: Sequence[Cell], first: int) -> str:
    """The names of the months above their first weeks."""
    line = ""
    for week, name in periods.month_labels(part):
        if week - first >= len(line) + (1 if line else 0):
            line = pad(line, week - first) + name
    return line


def _shade(cell: Cell, cells: int) -> tuple[str, str]:
    return SHADES[cell.level] * cells, STYLES[cell.level]


def _hours(recap: Recap, columns: int, out: CommandOutput) -> None:
    """Vertical bars, one per hour."""
    most = max(recap.hours)
    if not most:
        return
    _title("Messages by hour", out)
    step = next((number for number in (3, 2) if columns >= 5 + 24 * number), 1)
    wide = max(1, step - 1)
    heights = [-(-count * CHART_LINES * 8 // most) for count in recap.hours]
    for line in reversed(range(CHART_LINES)):
        bars = "".join(
            pad(EIGHTHS[min(8, max(0, tall - line * 8))] * wide, step) for tall in heights
        )
        out.styled(("     ", ""), (bars.rstrip(), "green"))
    labels = "".join(pad(f"{hour}", step * 6) for hour in (0, 6, 12, 18))
    out.text("     " + labels.rstrip(), "dim")


def _weekdays(recap: Recap) -> list[tuple[str, int]]:
    return list(zip(WEEKDAY_NAMES, recap.weekdays, strict=True)) if any(recap.weekdays) else []


def _ranked(
    title: str, counted: Sequence[RecapCount | tuple[str, int]], columns: int, out: CommandOutput
) -> None:
    """Names with horizontal bars."""
    if not counted:
        return
    _title(title, out)
    most = max(times for _, times in counted)
    names = [one_line(name) for name, _ in counted]
    digits = max(len(f"{times:,}") for _, times in counted)
    room = min(max(map(width, names)), max(8, columns - 9 - digits - 8))
    bar = max(4, min(BAR_CELLS, columns - 9 - digits - room))
    for name, (_, times) in zip(names, counted, strict=True):
        full = round(bar * times / most) or (1 if times else 0)
        out.styled(
            ("     " + pad(fit(name, room), room) + "  ", ""),
            ("█" * full + " " * (bar - full), "green"),
            ("  " + f"{times:,}".rjust(digits), "dim"),
        )


def _sentences(found: list[str], columns: int, out: CommandOutput) -> None:
    if not found:
        return
    _title("Highlights", out)
    for item in found:
        lines = textwrap.wrap(item, max(20, min(columns, 100) - 7), break_long_words=False)
        out.text(textwrap.indent("\n".join(lines), "     "))


def _tier_ups(found: Sequence[RecapTier], catalogue: Catalogue, out: CommandOutput) -> None:
    """The newest tiers first."""
    if not found:
        return
    _title(f"{plural(len(found), 'tier')} reached", out)
    names = {tier.id: tier.name for tier in catalogue.tiers}
    newest = list(reversed(found))[:MAX_TIERS]
    out.table(
        (
            TableColumn("tier"),
            TableColumn("achievement", flexible=True),
            TableColumn("reached", optional=True),
        ),
        [
            (names.get(item["tier"], item["tier"]), item["name"], long_date(item["day"]))
            for item in newest
        ],
    )
    if len(found) > len(newest):
        out.text(f"… and {len(found) - len(newest):,} more", "dim")


EXAMPLES = """\
examples:
  hermes recap                          this month, or the latest one with activity
  hermes recap --year                   this year
  hermes recap --month 2026-09          September 2026
  hermes recap --week 2026-W37 --json
  hermes recap --year 2026 --html year.html --png year.png

The page contains titles of conversations; the image does not, so it can be shared.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    period = parser.add_mutually_exclusive_group()
    for kind, form in (("year", "YYYY"), ("month", "YYYY-MM"), ("week", "YYYY-Www")):
        period.add_argument(f"--{kind}", nargs="?", const="", metavar=form,
                            help=f"{kind} to summarize (default: the latest)")  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="write an HTML page")
    parser.add_argument("--png", metavar="FILE", help="write an image")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    add_json_option(parser)
    parser.set_defaults(run=run)


class RecapView(NamedTuple):
    """A recap and its period."""

    period: Period
    recap: Recap
    catalogue: Catalogue
    is_fallback: bool
    span: tuple[str, str]  # of the complete history


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the recap, or write it to files."""
    from hermes_cli import history  # noqa: PLC0415 - `--help` does without

    asked = _requested_period(arguments)
    _refuse_existing(arguments)
    shown = _compute_recap(asked, out) if history.exists() else None
    if shown is None:
        if arguments.json:
            out.json({"period": None})
        else:
            out.text("No conversations to summarize yet.")
    elif arguments.json:
        _write_files(shown, arguments)
        out.json({"period": shown.period._asdict(), **shown.recap.as_json()})
    elif shown.recap.is_empty:
        out.text(_no_activity_text(shown))
    elif arguments.html or arguments.png:
        for path, size in _write_files(shown, arguments):
            out.text(f"{path}  {human_format.size(size)}  {shown.period.name}")
    else:
        show(shown.recap, _heading(shown), shown.catalogue, out)
    return 0


def _requested_period(arguments: argparse.Namespace) -> tuple[str, Period | None]:
    """The requested kind of period, and the period if given."""

    for kind in (periods.YEAR, periods.MONTH, periods.WEEK):
        text = getattr(arguments, kind)
        if text is not None:
            return kind, periods.parse(kind, text) if text else None
    return periods.MONTH, None


def _compute_recap(asked: tuple[str, Period | None], out: CommandOutput) -> RecapView | None:
    """Scan the history and compute the recap; None if it is empty."""
    from hermes_achievements.calendar import Calendar  # noqa: PLC0415 - as above
    from hermes_achievements.evaluation import views  # noqa: PLC0415 - as above
    from hermes_achievements.recap.period_report import list_active_days  # noqa: PLC0415 - as above
    from hermes_achievements.recap.recap import build_recap  # noqa: PLC0415 - as above
    from hermes_cli.commands.achievements import scan_progress  # noqa: PLC0415 - as above
    from hermes_conversation import achievements  # noqa: PLC0415 - as above
    from hermes_core.time_zones import find_zone  # noqa: PLC0415 - as above

    kind, named = asked
    service, source = achievements.service(), achievements.source()
    timeline: list[TimelineStep] = []
    is_rewarded = achievements.is_enabled()
    if is_rewarded:
        found_now = scan_progress.scan_history(out, may_be_earlier=False)
        service, source = found_now.service, found_now.source
        timeline = views.timeline(found_now.snapshot)
    calendar = Calendar(find_zone(source.zone))
    with contextlib.closing(source.open_ledger()) as ledger:
        tally = scan_progress.compute_tally(out, source, ledger, is_scanned=is_rewarded)
        days = list_active_days(tally)
        if not days:
            return None
        today = calendar.day(time.time())
        period = named or periods.latest_period(kind, days, today)
        is_fallback = named is None and not period.contains(today)
        period = period.clip(max(today, days[-1]))
        with contextlib.closing(source.open_history()) as history:
            result = build_recap(
                ledger, tally, calendar, period.first, period.last,
                lambda done, total: out.progress(f"Summarizing: {100 * done // total} %"),
                timeline=timeline, titles=history.titles,
            )  # fmt: skip
    out.progress("")
    service.close()
    return RecapView(period, result, service.catalogue, is_fallback, (days[0], days[-1]))


def _heading(shown: RecapView) -> str:
    """The name of the period, with the reason if it is a fallback."""
    name = shown.period.name
    if not shown.is_fallback:
        return name
    return f"{name}, the last {shown.period.kind} with activity"


def _no_activity_text(shown: RecapView) -> str:

    first, last = map(long_date, shown.span)
    return f"No activity in {shown.period.name}. Your history ranges from {first} to {last}."


def _refuse_existing(arguments: argparse.Namespace) -> None:
    """Raise UsageError before the scan if an output file exists."""
    from hermes_core.errors import UsageError  # noqa: PLC0415 - as above

    for name in (arguments.html, arguments.png):
        if name and Path(name).is_file() and not arguments.force:
            raise UsageError(f"{name} already exists; use --force to replace it.")


def _write_files(shown: RecapView, arguments: argparse.Namespace) -> list[tuple[Path, int]]:
    from hermes_cli import output_files  # noqa: PLC0415 - as above

    written = []
    for kind, name in (("html", arguments.html), ("png", arguments.png)):
        if not name or shown.recap.is_empty:
            continue
        path = Path(name).expanduser()
        if output_files.is_folder(name):
            output_files.make_folder(path)
            path = output_files.unused_path(path, f"hermes-recap-{shown.period.id}.{kind}")
        content = _page(shown) if kind == "html" else _picture(shown)
        written.append((path, output_files.write(path, [content], is_replacing=arguments.force)))
    return written


def _page(shown: RecapView) -> bytes:
    from hermes_achievements.pictures.recap_page import render_page  # noqa: PLC0415 - as above

    return render_page(shown.recap, shown.period.name, shown.catalogue).encode()


def _picture(shown: RecapView) -> bytes:
    from hermes_achievements.pictures import svg  # noqa: PLC0415 - as above
    from hermes_achievements.pictures.recap_card import recap_card  # noqa: PLC0415 - as above

    return svg.png(recap_card(shown.recap, shown.period.name, shown.catalogue))
