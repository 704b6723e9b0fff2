"""Shows whether a process follows other agents, for `hermes import --status` and the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_core import human_format
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError
from hermes_import.follower_status import FollowerStatus, read_status

if TYPE_CHECKING:
    from hermes_cli.output import CommandOutput


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
