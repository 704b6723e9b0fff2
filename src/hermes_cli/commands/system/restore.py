"""`hermes restore`: restore a backup, moving existing files aside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_cli.output import confirm
from hermes_cli.parser import add_json_option
from hermes_core import human_format, paths

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.portable.restore import RestoreReport

EXAMPLES = """\
examples:
  hermes restore hermes-backup-20260301-101500.zip
  hermes restore backup.zip --to /tmp/a-look-at-it

Existing files are moved to a folder before-restore-DATE, never deleted. Stop all programs
that use the history first.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="backup written by `hermes backup`")
    parser.add_argument("--to", metavar="DIR", help="restore into this folder instead")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Check the backup, ask for confirmation, restore it."""
    from hermes_state.portable.restore import Restore  # noqa: PLC0415 - `--help` does without

    folder = Path(arguments.to).expanduser().absolute() if arguments.to else paths.hermes_home()
    with Restore(Path(arguments.file).expanduser(), folder, out.progress) as restore:
        manifest = restore.check()
        out.progress("")
        existing = restore.in_the_way()
        question = (
            f"Replace the history in {folder} with the backup of "
            f"{human_format.local(manifest.created_at)} "
            f"({human_format.plural(manifest.sessions, 'conversation')})? "
            f"{human_format.plural(len(existing), 'existing file')} will be moved aside."
        )
        if existing and not confirm(question, out, is_confirmed=arguments.yes):
            return 1
        done = restore.put()
    if arguments.json:
        out.json(_facts(done))
    else:
        _print(done, out)
    return 0


def _facts(done: RestoreReport) -> dict[str, object]:
    return {
        "folder": str(done.folder),
        "files": done.files,
        "sessions": done.manifest.sessions,
        "messages": done.manifest.messages,
        "created_at": done.manifest.created_at,
        "moved": done.moved,
        "moved_to": None if done.moved_to is None else str(done.moved_to),
    }


def _print(done: RestoreReport, out: CommandOutput) -> None:
    conversations = human_format.plural(done.manifest.sessions, "conversation")
    messages = human_format.plural(done.manifest.messages, "message")
    out.text(f"Restored {conversations} with {messages} to {done.folder}")
    if done.moved_to is not None:
        out.text(f"The previous files are in {done.moved_to}")
