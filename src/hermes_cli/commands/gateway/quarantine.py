"""`hermes gateway quarantine`: messages and updates that could not be handled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.output import TableColumn
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.delivery.rows import FailedMessage

COLUMNS: Final = (
    TableColumn("number"),
    TableColumn("platform"),
    TableColumn("received"),
    TableColumn("error"),
)


def quarantine(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List the messages, or show, retry or delete one."""
    if (arguments.delete or arguments.retry) and arguments.message is None:
        raise UsageError("--delete and --retry require a message number.")
    if not history.exists():
        failed: list[FailedMessage] = []
    elif arguments.delete or arguments.retry:
        return (_delete if arguments.delete else _retry)(arguments.message, out)
    else:
        with history.open_for_reading() as db:
            failed = db.inbox.failed()
    if arguments.message is not None:
        failed = [message for message in failed if message.inbox_id == arguments.message]
        if not failed:
            raise UsageError(f"No message {arguments.message} in the quarantine.")
    if arguments.json:
        out.json([message._asdict() for message in failed])
    elif arguments.message is not None:
        _show(failed[0], out)
    elif failed:
        _list(failed, out)
    else:
        out.text("All messages were handled.")
    return 0


def _list(failed: list[FailedMessage], out: CommandOutput) -> None:
    now = time.time()
    rows = [
        (
            str(message.inbox_id),
            message.platform,
            human_format.ago(message.received_at, now),
            message.error or "",
        )
        for message in failed
    ]
    out.table(COLUMNS, rows)
    out.hint("`hermes gateway quarantine NUMBER` shows the content of one.")


def _show(message: FailedMessage, out: CommandOutput) -> None:
    out.text(f"{message.platform}, {human_format.local(message.received_at)}: {message.error}")
    out.text(message.content)


def _retry(number: int, out: CommandOutput) -> int:
    with history.open_for_writing() as db:
        is_waiting = db.inbox.retry_failed(number)
    if not is_waiting:
        raise UsageError(f"No message {number} in the quarantine that can be handled again.")
    out.text(f"Message {number} waits again; the gateway handles it.")
    return 0


def _delete(number: int, out: CommandOutput) -> int:
    with history.open_for_writing() as db:
        is_deleted = db.inbox.delete_failed(number)
    if not is_deleted:
        raise UsageError(f"No message {number} in the quarantine.")
    out.text(f"Message {number} deleted.")
    return 0
