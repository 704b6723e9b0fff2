"""`hermes import`: import conversations of other agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_cli.filters import TIME_FORMATS, parse_time
from hermes_cli.parser import add_json_option
from hermes_core import human_format
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError
from hermes_import.follower_status import FollowerStatus, read_status

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput


EXAMPLES: Final = """\
examples:
  hermes import                            show what is on this machine, and choose
  hermes import --yes                      import all of it
  hermes import claude-code                import new conversations of one agent
  hermes import codex /mnt/old-laptop/ada  from a home folder of another machine
  hermes import hermes-agent               move from hermes-agent, settings included
  hermes import chatgpt-export.zip         from an export of a web service
  hermes import --dry-run --since 30d      show what would be imported
  hermes import --follow                   keep importing while other agents work
  hermes import --status                   show whether that works

Repeat it at any time: only new messages are imported, and what you deleted here stays deleted.
The files of other agents are never changed.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "agent", nargs="?", metavar="AGENT", help="agent to import from, or a file to import"
    )
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="PATH",
        help="folder of the agent, or a home folder that contains it",
    )
    parser.add_argument(
        "--since", type=parse_time, metavar="WHEN", help=f"changed since: {TIME_FORMATS}"
    )
    parser.add_argument(
        "--project", type=Path, metavar="FOLDER", help="only conversations in this folder"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be imported, change nothing"
    )
    parser.add_argument(
        "--follow", action="store_true", help="keep importing until stopped with Ctrl+C"
    )
    parser.add_argument(
        "--status", action="store_true", help="show whether a process follows other agents"
    )
    parser.add_argument(
        "--profile", metavar="NAME", help="hermes-agent: move this profile instead of the home"
    )
    parser.add_argument(
        "--all-profiles", action="store_true", help="hermes-agent: move all profiles, too"
    )
    parser.add_argument("--yes", action="store_true", help="import without asking")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Import, or show what can be imported."""
    if arguments.status:
        return print_status(out, is_json=arguments.json)
    from hermes_cli.commands.imports import histories  # noqa: PLC0415 - the status does without

    return histories.run(arguments, out)


class FollowState(NamedTuple):
    """What the settings ask for, and what the follower reported."""

    is_enabled: bool
    is_running: bool
    reported: FollowerStatus

    @property
    def is_failing(self) -> bool:
        """Whether something does not work now."""
        if self.is_running:
            return bool(self.reported.failing)
        return self.is_enabled

    def texts(self) -> tuple[str, str]:
        """What happens, and what to do."""
        reported = self.reported
        if not self.is_running:
            text = "no process follows other agents"
            if not self.is_enabled:
                return text, "`hermes config set import.follow true` lets the gateway do it"
            if reported.last_failure:
                text += f"; the last failure was: {reported.last_failure}"
            return text, "Run `hermes gateway start` or `hermes serve`"
        text = f"process {reported.pid} follows other agents"
        if reported.restarts:
            text += f", restarted {human_format.plural(reported.restarts, 'time')}"
        if not reported.failing:
            return text, ""
        failing = "; ".join(f"{agent}: {error}" for agent, error in reported.failing.items())
        return f"{text}; not imported: {failing}", "Run `hermes import AGENT` for details"


def follow_state() -> FollowState:
    """The state of following on this machine."""
    is_enabled = False
    if is_set("import.follow"):
        try:
            is_enabled = ConfigFile.of_home().settings().get_bool("import.follow")
        except ConfigError:
            is_enabled = False  # the check of the settings reports it
    reported = read_status() or FollowerStatus()
    return FollowState(is_enabled, reported.is_running, reported)


def print_status(out: CommandOutput, *, is_json: bool) -> int:
    """Print the state; exit code 1 if something fails now."""
    state = follow_state()
    reported = state.reported
    if is_json:
        facts = {**reported._asdict(), "failing": dict(reported.failing)}
        out.json({"running": state.is_running, "enabled": state.is_enabled, **facts})
        return int(state.is_failing)
    text, advice = state.texts()
    out.text(f"{text[0].upper()}{text[1:]}.")
    if reported.last_failure and state.is_running:
        when = human_format.local(reported.failed_at)
        out.text(f"Last failure ({when}): {reported.last_failure}")
    if advice:
        out.hint(f"{advice}.")
    return int(state.is_failing)
