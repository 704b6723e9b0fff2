"""`hermes usage`: tokens and cost by day, model, project or source."""

from __future__ import annotations

import contextlib
import os
import time
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_cli.filters import TIME_FORMATS, parse_time
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_json_option
from hermes_core import human_format
from hermes_core.errors import ScanError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_dashboard.analytics.analysis import Analysis, AnalyticsData
    from hermes_dashboard.analytics.charts import Amounts, BudgetView, Span, Sums

EXAMPLES = """\
examples:
  hermes usage                           each of the last 30 days
  hermes usage --by model --since 7d
  hermes usage --by project --since 2026-01-01 --json
  hermes usage --by month --since 1y --source telegram

Input excludes tokens read from a cache. docs/reference/numbers.md describes what is counted.
"""
DEFAULT_DAYS: Final = 30
POLL_SECONDS: Final = 0.1
GROUPS: Final = ("day", "week", "month", "model", "project", "source")


class UsageLine(NamedTuple):
    """The usage of a day, a model, a project or a source."""

    name: str
    conversations: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float
    unpriced_tokens: int

    @property
    def cost(self) -> str:
        """The cost; a model without a known price has none."""
        if not self.unpriced_tokens:
            return f"${self.cost_usd:,.2f}"
        return f"over ${self.cost_usd:,.2f}" if self.cost_usd >= 0.005 else "unknown"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--by", choices=GROUPS, default="day", help="group by (default: day)")
    parser.add_argument(
        "--since", type=parse_time, metavar="WHEN", help=f"first day: {TIME_FORMATS}"
    )
    parser.add_argument("--until", type=parse_time, metavar="WHEN", help="last day")
    parser.add_argument("--source", help="only this source: cli, telegram, …")
    parser.add_argument("--model", help="only models with this in their name")
    parser.add_argument("--dir", metavar="DIR", help="only this folder and its subfolders")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print a table of usage, with totals."""
    from hermes_cli import history  # noqa: PLC0415 - `--help` does without

    if not history.exists():
        return history.print_none(arguments, out, {"by": arguments.by, "lines": [], "totals": None})
    from hermes_dashboard.analytics.analysis import Analysis  # noqa: PLC0415 - as above
    from hermes_dashboard.analytics.charts import (  # noqa: PLC0415 - as above
        Sums,
        month_budget,
    )

    with history.open_for_reading() as db, contextlib.closing(Analysis(db)) as analysis:
        data = _wait_for_data(analysis, out)
    span = _span(arguments, data)
    sums = Sums(data, span)
    lines = [line for line in _lines(arguments.by, sums, data) if any(line[1:])]
    totals = _line("total", sums.totals)
    budget = month_budget(data)
    if arguments.json:
        out.json({
            "by": arguments.by, "since": span.first, "until": span.last, "zone": data.zone,
            "lines": [line._asdict() for line in lines], "totals": totals._asdict(),
            "budget": budget and budget.model_dump(exclude={"is_exceeded"}),
        })  # fmt: skip
    else:
        _print_table(arguments.by, span, [*lines, totals] if lines else [], out)
        _print_budget(budget, out)
    return 0


def _print_budget(budget: BudgetView | None, out: CommandOutput) -> None:
    if budget is None:
        return
    state = "exceeded" if budget.is_exceeded else f"{budget.spent_usd / budget.limit_usd:.0%} used"
    out.text(
        f"Budget of {budget.month}: ${budget.spent_usd:,.2f} of ${budget.limit_usd:,.2f}, {state}",
        "yellow" if budget.is_exceeded else "dim",
    )


def _wait_for_data(analysis: Analysis, out: CommandOutput) -> AnalyticsData:
    """The numbers of the history, after new messages were counted."""
    while True:
        data = analysis.data()
        if data.is_complete:
            out.progress("")
            return data
        if data.error:
            raise ScanError(data.error)
        done, total = data.progress or (0, 0)
        out.progress(f"Counting your history: {done:,} of {total:,} sessions" if total else "")
        time.sleep(POLL_SECONDS)


def _span(arguments: argparse.Namespace, data: AnalyticsData) -> Span:
    from hermes_dashboard.analytics.charts import Span  # noqa: PLC0415 - as above

    day = data.calendar.day
    last = data.today if arguments.until is None else day(arguments.until)
    if arguments.since is not None:
        first = day(arguments.since)
    else:
        first = (date.fromisoformat(last) - timedelta(days=DEFAULT_DAYS - 1)).isoformat()
    if first > last:
        raise UsageError(f"--since ({first}) is after --until ({last}).")
    folder = os.path.abspath(arguments.dir) if arguments.dir else None  # noqa: PTH100 - no links
    return Span(first, last, arguments.source, arguments.model, folder)


def _lines(by: str, sums: Sums, data: AnalyticsData) -> list[UsageLine]:
    if by == "day":
        return [_line(day, amounts) for day, amounts in sorted(sums.days.items())]
    if by in {"week", "month"}:
        return list(_period_lines(by, sums.span, data))
    groups = {"model": sums.models, "project": sums.folders, "source": sums.sources}
    lines = [_line(name, amounts) for name, amounts in groups[by].items()]
    return sorted(lines, key=lambda line: (-line.cost_usd, -line.input_tokens, line.name))


def _period_lines(by: str, span: Span, data: AnalyticsData) -> Iterator[UsageLine]:
    from hermes_dashboard.analytics.charts import Sums  # noqa: PLC0415 - as above

    days: dict[str, list[str]] = {}
    for day in span.days():
        year, week, _ = date.fromisoformat(day).isocalendar()
        days.setdefault(day[:7] if by == "month" else f"{year}-W{week:02}", []).append(day)
    for name, members in days.items():
        totals = Sums(data, span._replace(first=members[0], last=members[-1])).totals
        yield _line(name, totals)


def _line(name: str, amounts: Amounts) -> UsageLine:
    return UsageLine(
        name, amounts.sessions, round(amounts.input_tokens), round(amounts.output_tokens),
        round(amounts.cache_read_tokens), round(amounts.cache_write_tokens),
        round(amounts.cost_usd, 6), round(amounts.unpriced_tokens),
    )  # fmt: skip


def _print_table(by: str, span: Span, lines: list[UsageLine], out: CommandOutput) -> None:
    out.text(f"{span.first} to {span.last}", "dim")
    if not lines:
        out.text("No usage in this period.")
        return
    number = human_format.number
    columns = (
        TableColumn(by, flexible=by in {"model", "project"}, least=16),
        TableColumn("conversations", right=True, optional=True),
        TableColumn("input", right=True), TableColumn("output", right=True),
        TableColumn("from cache", right=True, optional=True),
        TableColumn("to cache", right=True, optional=True), TableColumn("cost", right=True),
    )  # fmt: skip
    rows = [(line.name or "(unknown)", *map(number, line[1:6]), line.cost) for line in lines]
    out.table(columns, rows)
