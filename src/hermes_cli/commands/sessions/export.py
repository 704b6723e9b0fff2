"""`hermes sessions export`: conversations as JSONL, Markdown or HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_cli import history
from hermes_cli.filters import add_filters, session_filter
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_state.store import SessionDB

STDOUT = "-"
SUFFIXES = {".jsonl": "jsonl", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}
EXAMPLES = """\
examples:
  hermes sessions export history.jsonl --all
  hermes sessions export --session last --format md
  hermes sessions export pages/ --format html --since 1w
  hermes sessions export for-a-friend.html --session Oslo --redact

JSONL can be imported again without loss; Markdown and HTML are for reading.
OUT is a file, a folder (one file per conversation), or - for standard output.
"""


def configure(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = add_command(
        actions, "export", "export conversations to a file", examples=EXAMPLES, run=export
    )
    parser.add_argument("out", metavar="OUT", nargs="?", default=STDOUT,
                        help="file, folder, or - for standard output (default)")  # fmt: skip
    parser.add_argument("--format", choices=("jsonl", "md", "html"),
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
