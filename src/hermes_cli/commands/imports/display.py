"""Shows histories of other agents, and what was imported from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_cli.output import TableColumn
from hermes_core import human_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_cli.output import CommandOutput
    from hermes_import.importer import SourceReport
    from hermes_import.registry import FoundHistory, HistoryFacts
    from hermes_state import SessionDB

COLUMNS: Final = (
    TableColumn("agent", style="cyan"),
    TableColumn("place", flexible=True),
    TableColumn("conversations", right=True),
    TableColumn("size", right=True, optional=True),
    TableColumn("new or changed", right=True),
)


def print_found(
    db: SessionDB, found: Sequence[FoundHistory], out: CommandOutput, *, is_json: bool
) -> list[HistoryFacts]:
    """List the histories on this machine."""
    facts = [each.facts(db) for each in found]
    if is_json:
        out.json([each._asdict() for each in facts])
        return facts
    out.table(
        COLUMNS,
        [
            (
                each.agent,
                ", ".join(each.places),
                human_format.number(each.conversations),
                human_format.size(each.size_bytes),
                human_format.number(each.new),
            )
            for each in facts
        ],
    )
    return facts


def print_report(reports: Sequence[SourceReport], out: CommandOutput, *, is_dry_run: bool) -> None:
    """Print what was imported, what was not, and why."""
    verb = "would import" if is_dry_run else "imported"
    for report in reports:
        new = human_format.plural(report.new, "conversation")
        more = f", {report.extended} extended" if report.extended else ""
        messages = human_format.plural(report.messages, "message")
        out.text(f"{report.agent}: {verb} {new}{more} with {messages}.")
        _print_omissions(report, out)


def _print_omissions(report: SourceReport, out: CommandOutput) -> None:
    if report.deleted:
        what = human_format.plural(report.deleted, "conversation")
        out.text(f"  {what} not imported: deleted here.")
    if report.taken:
        what = human_format.plural(report.taken, "conversation")
        out.text(f"  {what} not imported: already in the history.")
    if report.other_project:
        out.text(
            f"  {human_format.plural(report.other_project, 'file')} of other projects skipped."
        )
    for kind, count in report.unknown.most_common():
        out.text(f"  {human_format.plural(count, 'record')} of unknown kind '{kind}' not imported.")
    for path, error in report.failures.items():
        out.note(f"  not read: {path}: {error}")
