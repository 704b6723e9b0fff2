"""`hermes recap`: look back on a year, a month or a week."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_cli.parser import add_json
from hermes_core import human_format

if TYPE_CHECKING:
    import argparse

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.recap.periods import Period
    from hermes_achievements.recap.recap import Recap
    from hermes_cli.output import Output

EXAMPLES = """\
examples:
  hermes recap                          this month, or the last one with anything in it
  hermes recap --year                   this year
  hermes recap --month 2026-09          September 2026
  hermes recap --week 2026-W37 --json
  hermes recap --year 2026 --html year.html --png year.png

The page names your longest conversations; the picture names none, so it can be shown around.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    period = parser.add_mutually_exclusive_group()
    for kind, form in (("year", "YYYY"), ("month", "YYYY-MM"), ("week", "YYYY-Www")):
        period.add_argument(f"--{kind}", nargs="?", const="", metavar=form,
                            help=f"that {kind}; the latest one if you name none")  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="write it as a page")
    parser.add_argument("--png", metavar="FILE", help="write it as a picture")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    add_json(parser)
    parser.set_defaults(run=run)


class Shown(NamedTuple):
    """A recap with its period, and why that one."""

    period: Period
    recap: Recap
    catalogue: Catalogue
    is_fallback: bool
    span: tuple[str, str]  # of the whole history


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Print the recap, or write it to files."""
    from hermes_cli import history  # noqa: PLC0415 - `--help` does without

    asked = _asked(arguments)
    _refuse_existing(arguments)
    shown = _look_back(asked, out) if history.exists() else None
    if shown is None:
        if arguments.json:
            out.json({"period": None})
        else:
            out.text("There is nothing to look back on yet: no conversation has been held here.")
    elif arguments.json:
        _write_files(shown, arguments)
        out.json({"period": shown.period._asdict(), **shown.recap.plain()})
    elif shown.recap.is_empty:
        out.text(_nothing(shown))
    elif arguments.html or arguments.png:
        for path, size in _write_files(shown, arguments):
            out.text(f"{path}  {human_format.size(size)}  {shown.period.name}")
    else:
        from hermes_cli.commands.achievements import recap_text  # noqa: PLC0415 - as above

        recap_text.show(shown.recap, _heading(shown), shown.catalogue, out)
    return 0


def _asked(arguments: argparse.Namespace) -> tuple[str, Period | None]:
    """The kind of period, and the period itself if it was named."""
    from hermes_achievements.recap import periods  # noqa: PLC0415 - as above

    for kind in (periods.YEAR, periods.MONTH, periods.WEEK):
        text = getattr(arguments, kind)
        if text is not None:
            return kind, periods.parse(kind, text) if text else None
    return periods.MONTH, None


def _look_back(asked: tuple[str, Period | None], out: Output) -> Shown | None:
    """Scan the history and look back; None when it is empty."""
    from hermes_achievements.calendar import Calendar  # noqa: PLC0415 - as above
    from hermes_achievements.evaluation import views  # noqa: PLC0415 - as above
    from hermes_achievements.recap import periods  # noqa: PLC0415 - as above
    from hermes_achievements.recap.period_report import days_with_something  # noqa: PLC0415 - as above
    from hermes_achievements.recap.recap import recap  # noqa: PLC0415 - as above
    from hermes_cli.commands.achievements import scan_progress  # noqa: PLC0415 - as above
    from hermes_conversation import achievements  # noqa: PLC0415 - as above
    from hermes_core.time_zones import find_zone  # noqa: PLC0415 - as above

    kind, named = asked
    service, source = achievements.service(), achievements.source()
    timeline: list[dict[str, Any]] = []
    is_rewarded = achievements.is_enabled()
    if is_rewarded:
        found_now = scan_progress.scanned(out, is_known_enough=False)
        service, source = found_now.service, found_now.source
        timeline = views.timeline(found_now.snapshot)
    calendar = Calendar(find_zone(source.zone))
    with contextlib.closing(source.open_ledger()) as ledger:
        tally = scan_progress.tallied(out, source, ledger, is_scanned=is_rewarded)
        days = days_with_something(tally)
        if not days:
            return None
        today = calendar.day(time.time())
        period = named or periods.latest(kind, days, today)
        is_fallback = named is None and not period.has(today)
        period = period.until(max(today, days[-1]))
        with contextlib.closing(source.open_history()) as history:
            found = recap(
                ledger, tally, calendar, period.first, period.last,
                lambda done, total: out.progress(f"looking back … {100 * done // total} %"),
                timeline=timeline, titles=history.titles,
            )  # fmt: skip
    out.progress("")
    service.close()
    return Shown(period, found, service.catalogue, is_fallback, (days[0], days[-1]))


def _heading(shown: Shown) -> str:
    """The period, and why it is this one where nobody asked for it."""
    name = shown.period.name
    if not shown.is_fallback:
        return name
    return f"{name}, the last {shown.period.kind} with anything in it"


def _nothing(shown: Shown) -> str:
    from hermes_achievements.recap.periods import spoken  # noqa: PLC0415 - as above

    first, last = map(spoken, shown.span)
    return f"{shown.period.name}: nothing happened. Your history goes from {first} to {last}."


def _refuse_existing(arguments: argparse.Namespace) -> None:
    """Say before a long scan that a file is in the way."""
    from hermes_core.errors import UsageError  # noqa: PLC0415 - as above

    for name in (arguments.html, arguments.png):
        if name and Path(name).is_file() and not arguments.force:
            raise UsageError(f"{name} exists already; --force replaces it.")


def _write_files(shown: Shown, arguments: argparse.Namespace) -> list[tuple[Path, int]]:
    from hermes_cli import output_files  # noqa: PLC0415 - as above

    written = []
    for kind, name in (("html", arguments.html), ("png", arguments.png)):
        if not name or shown.recap.is_empty:
            continue
        path = Path(name).expanduser()
        if output_files.is_folder(name):
            output_files.make_folder(path)
            path = output_files.unused(path, f"hermes-recap-{shown.period.id}.{kind}")
        content = _page(shown) if kind == "html" else _picture(shown)
        written.append((path, output_files.write(path, [content], is_replacing=arguments.force)))
    return written


def _page(shown: Shown) -> bytes:
    from hermes_achievements.pictures.recap_page import page  # noqa: PLC0415 - as above

    return page(shown.recap, shown.period.name, shown.catalogue).encode()


def _picture(shown: Shown) -> bytes:
    from hermes_achievements.pictures import raster  # noqa: PLC0415 - as above
    from hermes_achievements.pictures.recap_card import recap_card  # noqa: PLC0415 - as above

    return raster.png(recap_card(shown.recap, shown.period.name, shown.catalogue))
