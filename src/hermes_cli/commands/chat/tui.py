"""`hermes`, `hermes tui`: the full-screen terminal UI."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.permissions.grants import check_rule
from hermes_cli import output_settings
from hermes_cli.commands.chat import repl, shutdown
from hermes_cli.commands.chat.command import add_limit_options
from hermes_cli.commands.models import offer
from hermes_cli.parser import add_conversation_options
from hermes_core import __version__
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from tui_gateway import client, daemon

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_cli.output import CommandOutput
    from hermes_tui.app import HermesApp
    from hermes_tui.conversation import ConversationClient

NO_TERMINAL = (
    'The terminal UI requires an interactive terminal. Use `hermes chat -q "…"` without one.'
)
EXAMPLES = """\
examples:
  hermes                        start the terminal UI (same as `hermes tui`)
  hermes -c                     continue the most recent conversation in this folder
  hermes -r 20260105_1200       continue a conversation by ID, ID prefix or title
  hermes tui --model smollm2    use the small built-in model
  hermes tui --effort high --max-turns 50
  hermes tui --no-daemon        run in this process; closing the window ends the turn

A running turn continues after the window is closed; `hermes -c` returns to it.
F1 shows the keys.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes tui`."""
    add_conversation_options(parser, "tui")
    add_limit_options(parser)
    parser.add_argument("--no-daemon", action="store_true", help="do not use the background daemon")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Run the terminal UI."""
    from hermes_tui import terminal_driver  # noqa: PLC0415 - as below

    try:
        terminal_driver.require()
    except UsageError as error:
        raise UsageError(NO_TERMINAL) from error
    if output_settings.color_setting(out.note) == "never":
        os.environ["NO_COLOR"] = "1"  # read by the toolkit
    offer.require_model(arguments.model, out)
    connect = _connector(arguments, out)
    # The TUI toolkit takes longer to load than most commands take to run.
    from hermes_tui.conversation import ConversationClient, OpenRequest  # noqa: PLC0415 - as said

    here = str(Path.cwd().resolve())
    request = OpenRequest(
        here,
        arguments.resume or "",
        arguments.again,
        arguments.model,
        arguments.source,
        arguments.mode or "",
        "\n".join(check_rule(rule) for rule in arguments.allow),
        arguments.max_turns,
        arguments.max_output_tokens,
        arguments.effort,
    )
    conversation = ConversationClient(connect, request)
    conversation.open()
    app = _app(conversation)
    is_there = _run_app(app)
    if is_there and conversation.exists:
        _print_farewell(conversation, out)
    return app.return_code or 0


def _connector(
    arguments: argparse.Namespace, out: CommandOutput
) -> Callable[..., client.RpcClient]:
    """The connection to the daemon, or to a server in this process."""
    if not arguments.no_daemon:
        if daemon.ensure_running().version == __version__:
            return daemon.connect_to_daemon
        out.note("The running daemon is a different version; this conversation does not use it.")
    from hermes_conversation.purge_hook import keep_facts  # noqa: PLC0415 - not for clients
    from hermes_state.store import SessionDB  # noqa: PLC0415 - a client of the daemon needs no store
    from tui_gateway.hub import Hub  # noqa: PLC0415 - as above

    return lambda on_event: client.connect_in_process(
        Hub(SessionDB(purge_hook=keep_facts)), on_event
    )


def _app(conversation: ConversationClient) -> HermesApp:
    from hermes_tui.app import HermesApp  # noqa: PLC0415 - as above
    from hermes_tui.input_history import InputHistory  # noqa: PLC0415 - as above
    from hermes_tui.notifications import NotificationSettings  # noqa: PLC0415 - as above
    from hermes_tui.terminal_driver import ScreenDriver  # noqa: PLC0415 - as above

    settings = ConfigFile.of_home().settings()
    return HermesApp(
        conversation,
        ScreenDriver,
        theme=settings.get_str("tui.theme"),
        busy_input=settings.get_str("agent.busy_input"),
        notification=NotificationSettings(
            settings.get_str("tui.notify"), settings.get_int("tui.notify_seconds")
        ),
        history=InputHistory(repl.prompts_path()),
        has_vim_keys=settings.get_bool("display.vim_keys"),
    )


def _run_app(app: HermesApp) -> bool:
    """Run the app; return whether the terminal still exists."""
    try:
        app.run()
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        app.is_hung_up = True
        return False  # the window was closed; there is no terminal to restore
    finally:
        app.conversation.leave(is_over=not app.is_hung_up)
    return True


def _print_farewell(conversation: ConversationClient, out: CommandOutput) -> None:
    """Print how to continue, and new achievements."""
    session_id = conversation.session_id
    if conversation.continues_in_background:
        out.note("The turn continues in the background. To return to it:")
    else:
        shutdown.report_new_achievements(out)
    out.note(f"To continue: `hermes -r {session_id}`\n         or: `hermes chat -r {session_id}`")
