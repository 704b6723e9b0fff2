"""`hermes serve`: the background daemon that runs conversations."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from hermes_cli.parser import add_json_option
from hermes_core.background_process import end
from hermes_core.errors import UsageError
from hermes_core.instance_record import DAEMON
from hermes_core.json_values import objects_in
from tui_gateway import daemon
from tui_gateway.protocol import SessionStatus, parse

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes serve                  run the daemon in the foreground
  hermes serve --status         show whether it is running, and its conversations
  hermes serve --stop           stop it; running turns are interrupted and saved
  hermes serve --port 8642      listen on a fixed port, for other programs

`hermes` starts the daemon when it is needed; an idle daemon exits after a minute.
Programs connect with the URL and the access token in `run/serve.json` of HERMES_HOME.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes serve`."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true", help="show whether it is running")
    what.add_argument("--stop", action="store_true", help="stop the running instance")
    what.add_argument("--until-idle", action="store_true", help="exit after one idle minute")
    parser.add_argument(
        "--port", type=int, default=0, help="port to listen on (default: any free port)"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Run the server, or control the running instance."""
    if arguments.status:
        return _status(arguments, out)
    if arguments.stop:
        return _stop(out)
    if DAEMON.find() is None:
        _require_port(arguments.port)
        if not arguments.until_idle:
            out.note("Daemon running. Press Ctrl+C to stop.")
        else:
            os.chdir("/")  # do not keep the start folder busy
        if daemon.serve(port=arguments.port, is_permanent=not arguments.until_idle) is not None:
            return 0
    if arguments.until_idle:
        return 0  # another terminal has started a daemon at the same time
    raise UsageError("The daemon is already running. See `hermes serve --status`.")


def _require_port(port: int) -> None:
    """Raise UsageError if the port cannot be listened on."""
    if port == 0:
        return
    from tui_gateway.websocket_server import HOST  # noqa: PLC0415 - only with --port

    try:
        socket.create_server((HOST, port)).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "ports range from 0 to 65535"
        raise UsageError(
            f"Cannot listen on port {port}: {reason}. Choose another port, or omit --port "
            "to use any free one."
        ) from error


def _status(arguments: argparse.Namespace, out: CommandOutput) -> int:
    from tui_gateway import client  # noqa: PLC0415 - only for --status

    record = DAEMON.find()
    if record is None:
        if arguments.json:
            out.json({"running": False})
        else:
            out.hint("The daemon is not running. `hermes` starts it when needed.")
        return 0
    connection = client.connect_to(record, lambda *_: None)
    sessions = objects_in(connection.call("session.active_list"), "sessions")
    connection.close()
    if arguments.json:
        facts = {"url": record.url, "pid": record.pid, "version": record.version}
        out.json({"running": True, **facts, "sessions": sessions})
        return 0
    out.text(f"The daemon is running (PID {record.pid}, hermes {record.version}) at {record.url}")
    for state in (parse(SessionStatus, session) for session in sessions):
        out.text(f"  {state.status:8} {state.stored_session_id}  {state.title or ''}")
    return 0


def _stop(out: CommandOutput) -> int:
    record = DAEMON.find()
    if record is None:
        out.text("The daemon is not running.")
        return 0
    end(record.pid, lambda: DAEMON.find() is None)
    out.text("Daemon stopped. All conversations were saved.")
    return 0
