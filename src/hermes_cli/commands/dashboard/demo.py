"""`hermes demo`: the dashboard on a history that was made up, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.dashboard.demo_data import home
from hermes_cli.parser import add_json
from hermes_core.background_process import end
from hermes_core.errors import UsageError
from hermes_core.instance_record import DAEMON, DASHBOARD

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from hermes_cli.output import Output

HOME: Final = "HERMES_HOME"
PORT: Final = 9230
EXAMPLES = """\
examples:
  hermes demo                     make it, and open the dashboard on it; Ctrl-C ends it
  hermes demo --no-open           only print the link
  hermes demo --make              only make it, to look at it with other commands
  hermes demo --remove            take all of it away

It never touches your own history: it lives in a folder beside it, which --json tells.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes demo`."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--make", action="store_true", help="make the history and start nothing")
    what.add_argument("--remove", action="store_true", help="take the demo away")
    parser.add_argument("--port", type=int, default=PORT, help=f"the port ({PORT})")
    parser.add_argument("--no-open", action="store_true", help="open no browser")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Make the demo if it is missing, and show it."""
    if arguments.remove:
        return _remove(arguments, out)
    folder = home.make()
    os.environ[HOME] = str(folder)  # from here on, this process knows no other history
    _fill(folder, out)
    if arguments.make:
        return _told(folder, arguments, out, f"The demo is in {folder}.")
    out.note(f"This is a demo; its folder is {folder}. `hermes demo --remove` takes it away.")
    words = ["dashboard", "--port", str(arguments.port)]
    words += ["--no-open"] * arguments.no_open + ["--json"] * arguments.json
    out.flush()
    return subprocess.run(
        [sys.executable, "-P", "-m", "hermes_cli", *words], check=False
    ).returncode


def _fill(folder: Path, out: Output) -> None:
    """Write the history, unless it is there; one that was left half way is written anew."""
    done = folder / "state.db"
    if done.exists():
        return
    from hermes_cli.commands.dashboard.demo_data import generator  # noqa: PLC0415 - most demos are there
    from hermes_core.clock import ManualClock  # noqa: PLC0415 - as above
    from hermes_state import SessionDB  # noqa: PLC0415 - as above

    _end_daemon(folder)
    half = folder / "half"
    shutil.rmtree(half, ignore_errors=True)

    def tell(number: int, total: int) -> None:
        out.progress(f"making up a year of conversations: {number} of {total}")

    clock = ManualClock()
    home.put_model(folder)
    with SessionDB(half / "state.db", clock=clock) as db:
        generator.write(db, clock, datetime.now().astimezone(), tell)
    for one in sorted(half.iterdir(), key=lambda path: path.name == "state.db"):
        one.replace(folder / one.name)  # the history last: it says that all of it is there
    half.rmdir()
    out.progress("")


def _remove(arguments: argparse.Namespace, out: Output) -> int:
    folder = home.folder()
    if home.is_demo(folder) and DASHBOARD.is_running(folder):
        raise UsageError("the demo's dashboard runs; end it first (Ctrl-C where it was started)")
    if home.is_demo(folder):
        _end_daemon(folder)
    removed = home.remove()
    if removed is None:
        return _told(None, arguments, out, "There is no demo.")
    return _told(removed, arguments, out, f"{removed} is gone.")


def _end_daemon(folder: Path) -> None:
    """End the daemon that the demo's chats left behind: it writes into the folder."""
    if not DAEMON.is_running(folder):
        return
    found = DAEMON.find(folder)
    if found is None:
        raise UsageError("the demo's daemon is just starting; try again in a moment")
    end(found.pid, lambda: not DAEMON.is_running(folder))


def _told(folder: Path | None, arguments: argparse.Namespace, out: Output, text: str) -> int:
    if arguments.json:
        out.json({"folder": None if folder is None else str(folder), "is_there": _is_there()})
    else:
        out.text(text)
    return 0


def _is_there() -> bool:
    return home.is_demo(home.folder())
