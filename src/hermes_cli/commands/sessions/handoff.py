"""`hermes handoff`: continue a conversation in another agent, or in a chat app."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.parser import add_json_option
from hermes_conversation.handoff import hand_off, hand_to_agent, is_agent
from hermes_core.errors import UsageError
from hermes_core.system_programs import installer_program
from hermes_import.writers.writer import WRITERS

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_conversation.handoff import AgentHandoff


EXAMPLES = """\
examples:
  hermes handoff claude-code            continue the most recent conversation in Claude Code
  hermes handoff codex Oslo --redact    without keys, tokens and passwords
  hermes handoff telegram last          continue in a chat app

An agent gets a new session in its own folder; no file is changed. `hermes import` imports
what it adds, and counts nothing twice.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("target", metavar="TARGET", help=f"{', '.join(WRITERS)}, or a chat app")
    text = "ID or title (default: the most recent conversation)"
    parser.add_argument("session", metavar="ID", nargs="?", default="last", help=text)
    text = "replace keys, tokens and passwords with [redacted:…]"
    parser.add_argument("--redact", action="store_true", help=text)
    parser.add_argument("--import", action="store_true", dest="is_imported",
                        help="opencode: run its import command, too")  # fmt: skip
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Hand the conversation off, and print how it continues."""
    target = arguments.target.lower()
    with history.open_for_writing() as db:
        session_id = db.titles.resolve_resume_session_id(db.lookup.resolve(arguments.session))
        if is_agent(target):
            handoff = hand_to_agent(db, session_id, target, is_redacted=arguments.redact)
            return _finish(handoff, arguments, out)
        if arguments.redact or arguments.is_imported:
            raise UsageError(
                "A chat app gets the conversation itself: --redact and --import are for agents."
            )
        text = hand_off(db, session_id, target)
    if arguments.json:
        out.json({"session": session_id, "target": target, "result": text})
    else:
        out.text(f"{session_id}: {text}")
    return 0


def _finish(handoff: AgentHandoff, arguments: argparse.Namespace, out: CommandOutput) -> int:
    if arguments.is_imported:
        handoff = handoff._replace(is_imported=_import(handoff))
    if not arguments.json:
        out.text(handoff.text)
        if handoff.is_redacted:
            out.note("Secrets were redacted by patterns only. Review the file before sharing it.")
        return 0
    out.json(
        {
            "session": handoff.session_id,
            "target": arguments.target.lower(),
            "file": str(handoff.path),
            "native_id": handoff.native_id,
            "folder": handoff.folder,
            "import": list(handoff.import_command),
            "resume": list(handoff.resume_command),
            "installed": handoff.is_installed,
            "redacted": handoff.is_redacted,
        }
    )
    return 0


def _import(handoff: AgentHandoff) -> bool:
    """Run the import command of the agent; whether it has one."""
    command = handoff.import_command
    if not command:
        return False
    program = installer_program(command[0])
    if program is None:
        raise UsageError(
            f"{command[0]} is in no folder of the system. Wrote {handoff.path}. "
            f"Run: {handoff.shell_line}"
        )
    done = subprocess.run(
        [program, *command[1:]], cwd=handoff.folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise UsageError(f"`{shlex.join(command)}` failed: {reason}. Wrote {handoff.path}.")
    return True
