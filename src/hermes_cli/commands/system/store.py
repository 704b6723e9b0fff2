"""`hermes store`: where the history is stored, and copies of it in another database."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli.parser import add_command, add_json_option
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.home_files import HOME_FILES, kept_here
from hermes_core.paths import hermes_home
from hermes_state.store import SessionDB
from hermes_state.store_settings import history_exists, history_place

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.engine.database import Database

EXAMPLES: Final = """\
examples:
  hermes store check
  hermes store check postgresql://hermes@db.example/hermes
  hermes store copy --to postgresql://hermes@db.example/hermes
  hermes config set store.url postgresql://hermes@db.example/hermes
  hermes store copy --to ~/history.db      copy it back into a file
"""
SAMPLES: Final = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check_parser = add_command(
        actions, "check", "test the database, and install its library", "hermes store check",
        "hermes store check service=hermes", run=check,
    )  # fmt: skip
    check_parser.add_argument(
        "url", nargs="?", default="", metavar="URL", help="database (default: the current one)"
    )
    add_json_option(check_parser)
    copy_parser = add_command(
        actions, "copy", "copy the history into another database or file",
        "hermes store copy --to postgresql://hermes@db.example/hermes", run=copy,
    )  # fmt: skip
    copy_parser.add_argument(
        "--to", required=True, metavar="URL|FILE", help="new database, or a new SQLite file"
    )
    add_json_option(copy_parser)


def check(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Open the database, measure its latency, and say where it is."""
    from hermes_state.engine.engine import is_url, open_database  # noqa: PLC0415 - for this command

    target = arguments.url
    if is_url(target or history_place()):
        install_driver(out)
    if not target:
        if not history_exists():
            raise UsageError(
                f"{history_place()} does not exist yet: the first conversation creates it. To test "
                "a database: hermes store check URL"
            )
        with SessionDB(read_only=True) as db:
            return report(db.engine.database, out, is_json=arguments.json)
    database = open_database(target, read_only=True, may_be_empty=True)
    try:
        return report(database, out, is_json=arguments.json)
    finally:
        database.close()


def report(database: Database, out: CommandOutput, *, is_json: bool) -> int:
    """Print where a history is, its size and the latency of a read."""
    started = time.perf_counter()
    for _ in range(SAMPLES):
        database.read(lambda reader: reader.value("SELECT 1"))
    milliseconds = 1000 * (time.perf_counter() - started) / SAMPLES
    has_history = "sessions" in database.columns.tables
    sessions = (
        int(database.read(lambda reader: reader.value("SELECT count(*) FROM sessions")))
        if has_history
        else 0
    )
    if is_json:
        out.json({"place": database.place, "sessions": sessions, "read_ms": round(milliseconds, 3)})
        return 0
    out.text(f"{database.place}: {human_format.plural(sessions, 'session')}")
    out.text(f"A read takes {milliseconds:.2f} ms.")
    return 0


def install_driver(out: CommandOutput) -> None:
    """Install the client library of PostgreSQL if it is missing."""
    from hermes_state.engine.postgres.driver import DRIVER  # noqa: PLC0415 - for this command

    if DRIVER.fetch(out.progress):
        out.note("Installed the PostgreSQL client library.")


def copy(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Copy the history; the setting store.url is not changed."""
    from hermes_core.clock import SystemClock  # noqa: PLC0415 - for this command
    from hermes_state.engine.engine import is_url, open_database  # noqa: PLC0415 - as above
    from hermes_state.files import unpack, upload_files  # noqa: PLC0415 - as above
    from hermes_state.portable.store_copy import StoreCopy  # noqa: PLC0415 - as above

    if not history_exists():
        raise UsageError("No history to copy yet.")
    require_stopped()
    if is_url(arguments.to) or is_url(history_place()):
        install_driver(out)
    with SessionDB(purge_hook=keep_facts) as db:
        require_stopped_elsewhere(db)
        refuse_same_file(db, arguments.to)
        target = open_database(arguments.to, read_only=False, may_be_unfinished=True)
        writer = target.open_writer(SystemClock())

        def copy_files() -> int:
            if db.engine.database.is_file and not target.is_file:
                out.progress("media and other files")
                return upload_files(writer.submit)
            if target.is_file and not db.engine.database.is_file:
                return writer.submit(lambda tx: unpack(tx.execute, with_rules=True))
            return 0

        try:
            with db.engine.database.snapshot() as source:
                result = StoreCopy(source, target, writer).run(
                    lambda step, done, total: out.progress(f"{step}: {done:,} of {total:,} rows"),
                    copy_files,
                )
        finally:
            out.progress("")
            writer.close()
            target.close()
    if arguments.json:
        out.json(
            {
                "place": target.place,
                "rows": result.rows,
                "tables": result.tables,
                "files": result.files,
            }
        )
        return 0
    out.text(f"Copied and compared {result.rows:,} rows: {target.place}")
    if result.files:
        contents = ", ".join(entry.contents for entry in HOME_FILES if entry.is_shared)
        out.text(f"Copied {human_format.plural(result.files, 'file')}: {contents}.")
    if kept := kept_here(hermes_home()):
        out.note(
            f"Not copied: {', '.join(kept)}. They belong to this machine; `hermes backup` contains "
            "them."
        )
    if is_url(arguments.to):
        out.hint("To use it: hermes config set store.url URL")
    return 0


def refuse_same_file(db: SessionDB, target: str) -> None:
    """Refuse to copy a file onto itself; a database is recognized when it is open."""
    path = Path(target).expanduser()
    if target and path.exists() and os.path.realpath(path) == str(db.db_path):
        raise UsageError(
            f"{target} is the history that would be copied. Name another database or file."
        )


def require_stopped_elsewhere(db: SessionDB) -> None:
    """Refuse to copy while gateways on other machines change the history."""
    nodes = db.nodes.with_gateway()
    if nodes:
        raise UsageError(
            f"Gateways are running on {', '.join(nodes)} and would change the history. Run "
            "`hermes gateway stop` there first."
        )


def require_stopped() -> None:
    """Refuse to copy while the gateway answers messages."""
    from gateway import status  # noqa: PLC0415 - for this command

    if status.running_pid() is not None:
        raise UsageError(
            "The gateway is running and would change the history. Run `hermes gateway stop` "
            "first; pending messages are answered after the next start."
        )
