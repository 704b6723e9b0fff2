"""`hermes backup`: what cannot be rebuilt in one file, while Hermes is running."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_cli import history
from hermes_cli.parser import add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.signals import stop_signals

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.portable.backup.archive_format import BackupManifest

EXAMPLES = """\
examples:
  hermes backup
  hermes backup /mnt/usb/
  hermes backup before-the-update.zip --with-secrets

Hermes can keep running. Restore the backup with `hermes restore FILE`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("target", metavar="TARGET", nargs="?", default=".",
                        help="file or folder (default: ./hermes-backup-DATE.zip)")  # fmt: skip
    parser.add_argument("--with-secrets", action="store_true",
                        help="include the secrets (.env)")  # fmt: skip
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write the backup."""
    from hermes_cli import output_files  # noqa: PLC0415 - `--help` does without

    if not history.exists():
        raise UsageError(history.no_history_text())
    path = Path(arguments.target).expanduser()
    if output_files.is_folder(arguments.target):
        path.mkdir(parents=True, exist_ok=True)
        path = output_files.unused_path(path, output_files.dated_name("hermes-backup", ".zip"))
    if not path.parent.is_dir():
        raise UsageError(f"Folder {path.parent} does not exist.")
    with StopSignal() as stop, history.open_for_reading() as db:
        try:
            done = db.portable.backup_to(
                path.absolute(),
                with_secrets=arguments.with_secrets,
                progress=out.progress,
                should_stop=stop.is_received,
            )
        finally:
            out.progress("")
        # A signal that came too late to stop the backup has no effect.
    if arguments.json:
        out.json(asdict(done))
    else:
        _print(done, out)
    return 0


class StopSignal:
    """Takes SIGTERM, SIGINT and SIGHUP, so that the backup can stop and clean up."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._previous: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> StopSignal:
        for number in stop_signals():
            self._previous.append((number, signal.signal(number, self._receive)))
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for number, handler in self._previous:
            signal.signal(number, handler)
        if error is not None and self._number is not None:
            raise SystemExit(128 + self._number) from error

    def _receive(self, number: int, _frame: object) -> None:
        self._number = number

    def is_received(self) -> bool:
        """Whether a signal came."""
        return self._number is not None


def _named(files: list[str]) -> list[str]:
    """The names of files; those of folders are counted."""
    folders = Counter(file.partition("/")[0] for file in files if "/" in file)
    counted = [f"{name} ({human_format.plural(n, 'file')})" for name, n in folders.items()]
    return [*(file for file in files if "/" not in file), *counted]


def _print(done: BackupManifest, out: CommandOutput) -> None:
    out.text(done.path, "bold")
    out.pairs(
        [
            ("size", human_format.size(Path(done.path).stat().st_size)),
            ("conversations", human_format.number(done.sessions)),
            ("messages", human_format.number(done.messages)),
            ("files", ", ".join(_named(list(done.files)))),
        ]
    )
    if done.reused_bytes:
        reused = human_format.size(done.reused_bytes)
        out.note(f"Continued an interrupted backup: {reused} were compressed already.")
    for warning in done.warnings:
        out.note(f"The search index of another program is damaged: {warning}")
    for reason, names in done.left_out.items():
        out.note(f"Not included: {', '.join(names)} ({reason}).")
