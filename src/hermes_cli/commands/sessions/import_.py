"""`hermes sessions import`: import conversations from JSONL."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hermes_cli import history
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.errors import PortableFileError
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.portable.importer import ImportReport

STDIN = "-"
PATIENCE_SECONDS = 1.0
EXAMPLES = """\
examples:
  hermes sessions import history.jsonl
  hermes sessions import history.jsonl --dry-run
  hermes sessions import old.jsonl --on-conflict rename

The complete file is checked first; a damaged file changes nothing.
"""


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add_command(
        actions,
        "import",
        "import conversations from JSONL",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("file", metavar="FILE", help="exported file, or - for standard input")
    parser.add_argument(
        "--on-conflict",
        choices=("skip", "rename", "fail"),
        default="skip",
        help="handling of existing session IDs (default: skip)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check the file without importing it"
    )
    add_json_option(parser)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Import the file and print a report."""
    from dataclasses import asdict  # noqa: PLC0415 - slow to load

    if _is_of_hermes_agent(arguments.file):
        from hermes_cli.commands.imports import histories  # noqa: PLC0415 - rarely needed

        return histories.import_file(arguments.file, arguments, out)
    with _opened(arguments.file) as file:
        name = "standard input" if arguments.file == STDIN else arguments.file
        report = _import(file, name, arguments, out)
    if arguments.json:
        out.json(asdict(report))
    else:
        _print(report, out)
    return 0


def _is_of_hermes_agent(name: str) -> bool:
    """Whether a file was written by the `sessions export` of hermes-agent."""
    from hermes_import.agents.hermes_export import HermesExport  # noqa: PLC0415 - see above

    return name != STDIN and HermesExport().root_at(Path(name)) is not None


def _opened(name: str) -> IO[bytes]:
    """Open the file, or a seekable copy of stdin."""
    if name == STDIN:
        import shutil  # noqa: PLC0415 - `list` does without
        import tempfile  # noqa: PLC0415 - as above

        temporary_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
        shutil.copyfileobj(sys.stdin.buffer, temporary_file)
        return temporary_file
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise PortableFileError(f"Cannot read {name}: {error.strerror}.") from error


def _import(
    file: IO[bytes], name: str, arguments: argparse.Namespace, out: CommandOutput
) -> ImportReport:
    if not history.exists():
        from hermes_state.portable.export_reader import ExportFile  # noqa: PLC0415 - as above
        from hermes_state.portable.importer import ImportReport  # noqa: PLC0415 - as above

        # A damaged file or a dry run does not create a store.
        summary = ExportFile(file, name).verify()
        if arguments.dry_run:
            return ImportReport(summary.sessions, summary.messages, is_dry_run=True,
                                is_redacted=summary.is_redacted)  # fmt: skip
    began = time.monotonic()

    def progress(done: int, total: int) -> None:
        if time.monotonic() - began > PATIENCE_SECONDS:
            out.progress(f"Importing: {done:,} of {total:,} conversations")

    with SessionDB(purge_hook=keep_facts) as db:
        report = db.portable.import_file(
            file,
            name=name,
            on_conflict=arguments.on_conflict,
            is_dry_run=arguments.dry_run,
            progress=progress,
        )
    out.progress("")
    return report


def _print(report: ImportReport, out: CommandOutput) -> None:
    verb = "Would import" if report.is_dry_run else "Imported"
    what = human_format.plural(report.imported, "conversation")
    out.text(f"{verb} {what} with {human_format.plural(report.messages, 'message')}.")
    if report.skipped:
        skipped = human_format.plural(len(report.skipped), "conversation")
        out.text(f"Skipped {skipped} with existing IDs: {_some(report.skipped)}.")
    if report.unchanged:
        out.text(f"Unchanged: {human_format.plural(report.unchanged, 'conversation')}.")
    for old, new in report.renamed.items():
        out.text(f"{old} is now {new}")
    for session_id, title in report.retitled.items():
        out.text(f"{session_id} is now titled {title}")
    if report.is_redacted:
        out.note("The file was redacted: its secrets cannot be recovered.")
    if report.is_dry_run:
        out.text("Nothing was changed.", "bold")


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
