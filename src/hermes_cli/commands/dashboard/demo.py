"""`hermes demo`: the dashboard on sample data, in a separate folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.dashboard.demo_data import home
from hermes_cli.parser import add_json_option
from hermes_core.background_process import end
from hermes_core.errors import UsageError
from hermes_core.instance_record import DAEMON, DASHBOARD

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from hermes_cli.output import CommandOutput

HOME_VARIABLE: Final = "HERMES_HOME"
DEMO_PORT: Final = 9230
EXAMPLES = """\
examples:
  hermes demo                     create the sample data and open the dashboard on it
  hermes demo --no-open           print the link instead of opening a browser
  hermes demo --make              create the sample data only, to use it with other commands
  hermes demo --remove            remove the sample data

Your own history is never touched; sample data lives in a separate folder (see --json).
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes demo`."""
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--make", action="store_true", help="create the sample data only")
    modes.add_argument("--remove", action="store_true", help="remove the sample data")
    parser.add_argument("--port", type=int, default=DEMO_PORT, help=f"port (default: {DEMO_PORT})")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Create the sample data if missing, and open the dashboard."""
    if arguments.remove:
        return _remove(arguments, out)
    folder = home.make()
    os.environ[HOME_VARIABLE] = str(folder)  # this process uses only the sample data from here on
    _fill(folder, out)
    if arguments.make:
        return _report(folder, arguments, out, f"The sample data is in {folder}.")
    out.note(f"Using sample data in {folder}. Remove it with `hermes demo --remove`.")
    command = ["dashboard", "--port", str(arguments.port)]
    command += ["--no-open"] * arguments.no_open + ["--json"] * arguments.json
    out.flush()
    return subprocess.run(
        [sys.executable, "-P", "-m", "hermes_cli", *command], check=False
    ).returncode


def _fill(folder: Path, out: CommandOutput) -> None:
    """Write the sample data unless it is complete."""
    done = folder / "state.db"
    if done.exists():
        return
    from hermes_cli.commands.dashboard.demo_data import generator  # noqa: PLC0415 - most demos are there
    from hermes_core.clock import ManualClock  # noqa: PLC0415 - as above
    from hermes_state.store import SessionDB  # noqa: PLC0415 - as above

    _stop_daemon(folder)
    partial = folder / "half"
    shutil.rmtree(partial, ignore_errors=True)

    def show_progress(number: int, total: int) -> None:
        out.progress(f"Creating sample conversations: {number} of {total}")

    clock = ManualClock()
    home.put_model(folder)
    with SessionDB(partial / "state.db", clock=clock) as db:
        generator.write(db, clock, datetime.now().astimezone(), show_progress)
    for item in sorted(partial.iterdir(), key=lambda path: path.name == "state.db"):
        item.replace(folder / item.name)  # the history last: it marks the data as complete
    partial.rmdir()
    out.progress("")


def _remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    folder = home.folder()
    if home.is_demo(folder) and DASHBOARD.is_running(folder):
        raise UsageError(
            "The dashboard of the demo is running. Stop it first (Ctrl+C in its terminal)."
        )
    if home.is_demo(folder):
        _stop_daemon(folder)
    removed = home.remove()
    if removed is None:
        return _report(None, arguments, out, "No sample data to remove.")
    return _report(removed, arguments, out, f"Removed {removed}.")


def _stop_daemon(folder: Path) -> None:
    """Stop the daemon of the demo, which writes into its folder."""
    if not DAEMON.is_running(folder):
        return
    result = DAEMON.find(folder)
    if result is None:
        raise UsageError("The daemon of the demo is starting. Try again in a moment.")
    end(result.pid, lambda: not DAEMON.is_running(folder))


def _report(
    folder: Path | None, arguments: argparse.Namespace, out: CommandOutput, text: str
) -> int:
    if arguments.json:
        out.json({"folder": None if folder is None else str(folder), "is_there": _exists()})
    else:
        out.text(text)
    return 0


def _exists() -> bool:
    return home.is_demo(home.folder())
