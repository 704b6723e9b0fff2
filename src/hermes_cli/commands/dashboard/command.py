"""`hermes dashboard`: run and control the web dashboard."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes_cli.parser import add_command, add_json_option
from hermes_core import paths
from hermes_core.background_process import end
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.instance_record import DASHBOARD, InstanceRecord
from hermes_dashboard.auth.allowed_origins import allowed_origins, is_loopback
from hermes_dashboard.auth.passwords import PasswordFile

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes dashboard                     open it in the browser; Ctrl+C stops it
  hermes dashboard --no-open           print a single-use link instead
  hermes dashboard --link              print a new link, for another browser
  hermes dashboard --status            show whether it is running, and where
  hermes dashboard password            set the password for other machines
  hermes dashboard confirm             list changes that the page requested
  hermes dashboard --host 0.0.0.0      allow other machines, with that password
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes dashboard`."""
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--link", action="store_true", help="print a new link to the running instance"
    )
    modes.add_argument("--status", action="store_true", help="show whether it is running")
    modes.add_argument("--stop", action="store_true", help="stop the running instance")
    parser.add_argument("--port", type=int, help="port (default: setting dashboard.port, 9229)")
    parser.add_argument("--host", help="address to listen on (default: setting dashboard.host)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    add_json_option(parser)
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    examples = "examples:\n  hermes dashboard password\n  hermes dashboard password --remove\n"
    password_parser = add_command(
        actions, "password", "set the password for other machines", examples, run=password
    )
    password_parser.add_argument("--remove", action="store_true", help="remove the password")
    examples = "examples:\n  hermes dashboard confirm\n  hermes dashboard confirm K7QM4D P9Y4YA\n"
    confirm_parser = add_command(
        actions, "confirm", "apply changes that the page requested", examples, run=confirm_change
    )
    confirm_parser.add_argument(
        "codes", metavar="CODE", nargs="*", help="code shown on the page (omit to list changes)"
    )
    confirm_parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask for confirmation"
    )
    add_json_option(confirm_parser)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Run the server, or control the running instance."""
    home = paths.hermes_home()
    if arguments.status:
        return _status(DASHBOARD.find(home), arguments, out)
    if arguments.stop:
        return _stop(DASHBOARD.find(home), out)
    if arguments.link and not DASHBOARD.is_running(home):
        raise UsageError("The dashboard is not running. Start it with `hermes dashboard`.")
    if DASHBOARD.is_running(home):
        return _open_running(arguments, out)
    from hermes_cli.commands.dashboard import process  # noqa: PLC0415 - not to ask or to stop

    code = process.serve(arguments, out)
    return _open_running(arguments, out) if code is None else code


def _open_running(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print a new link to the running dashboard."""
    from hermes_cli.commands.dashboard import links  # noqa: PLC0415 - only to ask

    result = links.find_running(paths.hermes_home())
    link = links.request_link(result)
    if not arguments.link:
        out.note(f"The dashboard is already running (PID {result.pid}).")
    if _ignores_address(result, arguments):
        out.note(
            f"It listens on {result.url}; --host and --port have no effect. "
            "To change them, run `hermes dashboard --stop` and start it again."
        )
    links.print_link(result, link, out, as_json=arguments.json)
    if not (arguments.no_open or arguments.link):
        links.open_browser(link, out)
    return 0


def _ignores_address(found: InstanceRecord, arguments: argparse.Namespace) -> bool:
    """Whether the running dashboard listens on another address than requested."""
    here = urlsplit(found.url)
    port = arguments.port or here.port or 0  # 0 means any port
    host = arguments.host or here.hostname or ""
    requested = urlsplit(allowed_origins(host, port).url)
    return (requested.hostname, requested.port) != (here.hostname, here.port)


def _status(found: InstanceRecord | None, arguments: argparse.Namespace, out: CommandOutput) -> int:
    if arguments.json:
        facts = {} if found is None else {"url": found.url, "pid": found.pid}
        version = {} if found is None else {"version": found.version}
        out.json({"running": found is not None, **facts, **version})
    elif found is None:
        out.hint("The dashboard is not running. Start it with `hermes dashboard`.")
    else:
        process = f"PID {found.pid}, hermes {found.version}"
        out.text(f"The dashboard is running ({process}): {found.url}/")
        out.hint("Run `hermes dashboard --link` for a link that opens it.")
    return 0


def _stop(found: InstanceRecord | None, out: CommandOutput) -> int:
    if found is None:
        out.text("The dashboard is not running.")
        return 0
    end(found.pid, lambda: not DASHBOARD.is_running(paths.hermes_home()))
    out.text("Dashboard stopped.")
    return 0


def confirm_change(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Apply a change that the page requested."""
    from hermes_cli.commands.dashboard import confirm  # noqa: PLC0415 - `--help` does without

    return confirm.run(arguments, out)


# Password


def password(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Set or remove the password; signs out all browsers."""
    file = PasswordFile(paths.hermes_home())
    if arguments.remove:
        return _remove(file, out)
    file.set(_read_password(out))
    out.text("Password set. All browsers have to sign in again.")
    host = ConfigFile.of_home().settings().get_str("dashboard.host")
    if is_loopback(host):
        out.hint("It is required when other machines connect: `hermes dashboard --host ADDRESS`.")
    return 0


def _remove(file: PasswordFile, out: CommandOutput) -> int:
    had = file.remove()
    out.text("Password removed." if had else "No password was set.")
    return 0


def _read_password(out: CommandOutput) -> str:
    """Prompt twice, hidden; from a pipe, read the first line."""
    if not sys.stdin.isatty():
        result = sys.stdin.readline().rstrip("\r\n")
        if not result:
            raise UsageError("No password given: stdin is empty.")
        return result
    import getpass  # noqa: PLC0415 - rarely needed

    out.flush()
    first = getpass.getpass("New password: ")
    if getpass.getpass("Repeat the password: ") != first:
        raise UsageError("The passwords do not match; nothing was changed.")
    return first
