"""`hermes sessions` export and import: conversations as files."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hermes_cli import history
from hermes_cli.filters import add_filters, session_filter
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.errors import PortableFileError, UsageError
from hermes_import.writers.writer import WRITERS, writer_of
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_state.portable.importer import ImportReport


STDOUT = "-"
SUFFIXES = {".jsonl": "jsonl", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}
EXAMPLES = """\
examples:
  hermes sessions export history.jsonl --all
  hermes sessions export --session last --format md
  hermes sessions export pages/ --format html --since 1w
  hermes sessions export for-a-friend.html --session Oslo --redact
  hermes sessions export session.jsonl --session Oslo --format codex

JSONL can be imported again without loss; Markdown and HTML are for reading; the names of agents
stand for sessions of these programs (`hermes handoff` writes them where the program finds them).
OUT is a file, a folder (one file per conversation), or - for standard output.
"""


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add_command(actions, "export", "export conversations to a file", EXAMPLES, run=export)
    parser.add_argument("out", metavar="OUT", nargs="?", default=STDOUT,
                        help="file, folder, or - for standard output (default)")  # fmt: skip
    parser.add_argument("--format", choices=("jsonl", "md", "html", *WRITERS),
                        help="format (default: by the suffix of OUT, else jsonl)")  # fmt: skip
    parser.add_argument("--session", "--session-id", metavar="ID",
                        help="export only this conversation")  # fmt: skip
    parser.add_argument("--lineage", action="store_true",
                        help="with --session: include its ancestors and continuations")  # fmt: skip
    add_filters(parser)
    parser.add_argument("--all", action="store_true", help="include archived conversations")
    parser.add_argument("--trash", action="store_true", help="include conversations in the trash")
    parser.add_argument("--undone", action="store_true", help="md, html: include undone messages")
    parser.add_argument("--redact", action="store_true",
                        help="replace keys, tokens and passwords with [redacted:…]")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    add_json_option(parser)


def export(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write the file or files."""
    from hermes_cli import output_files  # noqa: PLC0415 - `list` does without

    form = _format(arguments)
    if arguments.json and arguments.out == STDOUT:
        raise UsageError("--json requires OUT: it describes the written file.")
    if not history.exists():
        raise UsageError(history.no_history_text())
    if form in WRITERS:
        return _export_for_agent(form, arguments, out)
    suffix = Path(arguments.out).suffix
    if suffix and suffix.lower() not in SUFFIXES and not arguments.format:
        out.note(f"Unknown suffix {suffix}: writing JSONL. Other formats: --format md, html.")
    with history.open_for_reading() as db:
        ids = _selected(db, arguments)
        if not ids:
            out.note("No matching conversations.")
        _note_archived(db, arguments, len(ids), out)
        if not ids:
            return 1
        if arguments.out == STDOUT:
            for piece in _pieces(db, ids, form, arguments):
                out.raw(piece)
            return 0
        written = {}
        for path, some in _files(ids, form, arguments.out):
            path.parent.mkdir(parents=True, exist_ok=True)
            pieces = output_files.with_progress(_pieces(db, some, form, arguments), out)
            written[str(path)] = output_files.write(path, pieces, is_replacing=arguments.force)
    _report(written, len(ids), form, arguments, out)
    return 0


def _export_for_agent(agent: str, arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write sessions of another agent: one to a file or standard output, or all to a folder."""
    from hermes_cli import output_files  # noqa: PLC0415 - `list` does without
    from hermes_import.writers.conversation import read_conversation  # noqa: PLC0415 - as above

    writer = writer_of(agent, Path.home(), os.environ)
    written: dict[str, int] = {}
    is_folder = output_files.is_folder(arguments.out)
    with history.open_for_writing() as db:  # messages of other programs get identities
        ids = [each for each in _selected(db, arguments) if db.messages.rows(each, limit=1)]
        if not ids:
            out.note("No matching conversations.")
            return 1
        if len(ids) > 1 and not is_folder:
            raise UsageError(
                f"A file holds one session of {writer.label}. Name a folder (OUT/), or one "
                "conversation with --session."
            )
        for session_id in ids:
            talk = read_conversation(db, session_id, agent, is_redacted=arguments.redact)
            if arguments.out == STDOUT:
                for piece in writer.pieces(talk):
                    out.raw(piece)
                return 0
            path = (
                Path(arguments.out) / writer.path(talk).name if is_folder else Path(arguments.out)
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            size = output_files.write(path, writer.pieces(talk), is_replacing=arguments.force)
            written[str(path)] = size
    _report(written, len(ids), agent, arguments, out)
    return 0


def _format(arguments: argparse.Namespace) -> str:
    suffix = Path(arguments.out).suffix.lower()
    return str(arguments.format or SUFFIXES.get(suffix, "jsonl"))


def _selected(db: SessionDB, arguments: argparse.Namespace) -> list[str]:
    if arguments.session:
        session_id = db.lookup.resolve(arguments.session)
        return db.portable.relatives_of(session_id) if arguments.lineage else [session_id]
    if arguments.lineage:
        raise UsageError("--lineage requires --session.")
    return db.portable.sessions_to_export(
        include_archived=arguments.all, include_trashed=arguments.trash, **session_filter(arguments)
    )


def _note_archived(
    db: SessionDB, arguments: argparse.Namespace, count: int, out: CommandOutput
) -> None:
    """Say how many archived conversations are left out."""
    if arguments.session or arguments.all:
        return
    others = db.portable.sessions_to_export(
        include_archived=True, include_trashed=arguments.trash, **session_filter(arguments)
    )
    if len(others) > count:
        left_out = human_format.plural(len(others) - count, "archived conversation")
        out.note(f"{left_out} not exported; --all includes them.")


def _files(ids: list[str], form: str, target: str) -> Iterator[tuple[Path, list[str]]]:
    """The sessions of each file."""
    from hermes_cli import output_files  # noqa: PLC0415 - as above

    if not output_files.is_folder(target):
        yield Path(target), ids
    elif form == "jsonl":
        name = output_files.dated_name("hermes-export", ".jsonl")
        yield output_files.unused_path(Path(target), name), ids
    else:
        taken: set[str] = set()
        for session_id in ids:
            name = file_name(session_id, taken)
            yield Path(target) / f"{name}.{form}", [session_id]


def file_name(session_id: str, taken: set[str]) -> str:
    """A unique file name for a session ID, valid on every file system."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", session_id).lstrip(".")[:150] or "session"
    name, number = plain, 2
    while name.lower() in taken:
        name, number = f"{plain}-{number}", number + 1
    taken.add(name.lower())
    return name


def _pieces(
    db: SessionDB, ids: list[str], form: str, arguments: argparse.Namespace
) -> Iterator[bytes]:
    if form == "jsonl":
        yield from db.portable.iter_export_file(ids, is_redacted=arguments.redact)
        return
    from hermes_state.portable import html, markdown, readable, redaction  # noqa: PLC0415 - rarely

    redactor: Any = redaction.Redactor() if arguments.redact else readable.NoRedaction()
    reading = readable.ReadOptions(db, redactor, with_undone=arguments.undone)
    results = (item for item in map(reading.conversation, ids) if item is not None)
    if form == "md":
        texts = markdown.pages(results)
    else:
        heads = (item for item in map(reading.conversation, ids) if item is not None)
        texts = html.pages(results, [head.title for head in heads])
    for text in texts:
        yield readable.to_utf8(text)


def _report(
    written: dict[str, int],
    sessions: int,
    form: str,
    arguments: argparse.Namespace,
    out: CommandOutput,
) -> None:
    if arguments.json:
        facts = {"sessions": sessions, "format": form, "redacted": arguments.redact}
        out.json({"files": written, **facts})
        return
    for path, size in list(written.items())[:10]:
        out.text(f"{path}  {human_format.size(size)}")
    if len(written) > 10:
        out.text(f"… and {human_format.plural(len(written) - 10, 'more file')}")
    out.text(f"{human_format.plural(sessions, 'conversation')} exported.")
    if arguments.redact:
        out.note("Secrets were redacted, so this file is not a backup. Review it before sharing.")


STDIN = "-"
PATIENCE_SECONDS = 1.0
IMPORT_EXAMPLES = """\
examples:
  hermes sessions import history.jsonl
  hermes sessions import history.jsonl --dry-run
  hermes sessions import old.jsonl --on-conflict rename

The complete file is checked first; a damaged file changes nothing.
"""


def configure_import(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add_command(
        actions, "import", "import conversations from JSONL", IMPORT_EXAMPLES, run=run
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
