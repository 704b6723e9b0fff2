"""`hermes restore`: restore a backup, moving existing files aside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_cli.output import confirm
from hermes_cli.parser import add_json_option
from hermes_core import human_format, paths

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.portable.restore import RestoreReport

NOT_ACCEPTED = (
    "These were not restored. The backup's settings, rules, skills, plugins, commands and "
    "instructions are next to yours, with the suffix .from-backup; to use them, run "
    "`hermes restore` with --accept-settings."
)
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
    parser.add_argument(
        "--accept-settings",
        action="store_true",
        help="also restore settings and files that grant permissions (they are printed)",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Check the backup, ask for confirmation, restore it."""
    from hermes_state.portable.restore import Restore  # noqa: PLC0415 - `--help` does without

    folder = Path(arguments.to).expanduser().absolute() if arguments.to else paths.hermes_home()
    with Restore(Path(arguments.file).expanduser(), folder, out.progress) as restore:
        manifest = restore.check()
        out.progress("")
        _print_grants(restore.grants, out)
        restore.accepts_settings = arguments.accept_settings
        existing = restore.in_the_way()
        question = (
            f"Replace the history in {folder} with the backup of "
            f"{human_format.local(manifest.created_at)} "
            f"({human_format.plural(manifest.sessions, 'conversation')})? "
            f"{human_format.plural(len(existing), 'existing file')} will be moved aside."
        )
        if existing and not confirm(question, out, is_confirmed=arguments.yes):
            return 1
        if restore.grants and not restore.accepts_settings:
            restore.accepts_settings = _asks_for_settings(arguments, out)
        done = restore.put()
    if restore.grants and not restore.accepts_settings:
        out.note(NOT_ACCEPTED)
    if arguments.json:
        out.json({**_facts(done), "grants": restore.grants, "accepted": restore.accepts_settings})
    else:
        _print(done, out)
    return 0


def _print_grants(grants: list[str], out: CommandOutput) -> None:
    """Print what the backup would grant, before anything is asked."""
    if not grants:
        return
    out.flush()
    out.note("This backup grants things that your current settings do not:")
    for line in grants:
        out.note(f"  {line}")


def _asks_for_settings(arguments: argparse.Namespace, out: CommandOutput) -> bool:
    """Ask about the printed settings; without a terminal or with --yes they are not accepted."""
    if arguments.yes or not (sys.stdin.isatty() and out.is_terminal):
        return False
    return confirm("Restore these too?", out, is_confirmed=False)


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
