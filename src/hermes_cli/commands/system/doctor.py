"""`hermes doctor`: check the installation and the history."""

from __future__ import annotations

import platform
import shutil
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gateway import status
from hermes_agent.providers import catalog
from hermes_cli.parser import add_json_option
from hermes_conversation.purge_hook import keep_facts
from hermes_core import __version__, human_format
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, HermesError, NoModelError, StoreError, UsageError
from hermes_core.instance_record import DAEMON
from hermes_core.paths import config_path, hermes_home, state_db_path
from hermes_core.system_programs import program_on_path
from hermes_state.store import SessionDB
from hermes_state.store_settings import history_exists

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from hermes_cli.output import CommandOutput

LOW_SPACE_BYTES: Final = 500_000_000


class Readiness(NamedTuple):
    """The result of a check."""

    name: str
    status: str
    detail: str
    advice: str = ""


def check_readiness() -> list[Readiness]:
    """All checks of this module."""
    checks = (check_gateway(), *check_service(), check_path(), check_space())
    return [*check_model(), check_daemon(), *checks]


def check_model() -> Iterator[Readiness]:
    """Whether a model is chosen, its key is accepted, and its endpoint lists it."""
    from hermes_conversation import agent_factory  # noqa: PLC0415 - `--help` does without

    try:
        choice = agent_factory.model_chain(ConfigFile.of_home().settings())[0]
    except NoModelError:
        advice = "Run `hermes setup`, or set e.g. ANTHROPIC_API_KEY"
        yield Readiness("model", "warning", "none configured", advice)
        return
    except HermesError as error:
        yield Readiness("model", "failed", str(error), "Run `hermes setup`")
        return
    checked = catalog.check_model(choice)
    yield Readiness("model", checked.status, checked.detail, checked.advice)


def check_daemon() -> Readiness:
    """Whether the daemon runs, and is of this release."""
    record = DAEMON.find()
    if record is None:
        return Readiness("daemon", "ok", "not running; the terminal UI starts it")
    if record.version != __version__:
        detail = f"running, but of release {record.version}"
        return Readiness("daemon", "warning", detail, "Close the terminal UIs; it exits when idle")
    return Readiness("daemon", "ok", f"running (PID {record.pid})")


def check_gateway() -> Readiness:
    """Whether the gateway runs, and which chat platforms it has."""
    names = configured_platforms()
    process_id = status.running_pid()
    listed = ", ".join(names) or "no chat platform configured"
    if process_id is not None:
        return Readiness("gateway", "ok", f"running (PID {process_id}); {listed}")
    if not names:
        return Readiness("gateway", "skipped", "not configured: no chat platform")
    return Readiness("gateway", "warning", f"not running; {listed}", "Run `hermes gateway start`")


def check_service() -> list[Readiness]:
    """Whether an installed service starts the launcher."""
    from hermes_cli.commands.gateway import setup  # noqa: PLC0415 - slow

    path = setup.service().path
    if not path.exists():
        return []
    if setup.is_outdated():
        detail = f"{path} is of an older release and may not start after an update"
        return [Readiness("gateway service", "warning", detail, "Run `hermes gateway install`")]
    return [Readiness("gateway service", "ok", str(path))]


def configured_platforms() -> list[str]:
    """The names of the chat platforms that the gateway connects to."""
    from gateway.platforms.registry import PlatformRegistry  # noqa: PLC0415 - slow
    from gateway.process import config_loader  # noqa: PLC0415 - as above

    try:
        entries = config_loader.enabled_platforms(
            config_loader.config_of_home(), PlatformRegistry.of_home(), config_loader.Secrets()
        )
    except ConfigError:
        return []  # the check of the settings reports it
    return [entry.name for entry in entries if entry.name != "local"]


def check_path() -> Readiness:
    """Whether the shell finds `hermes`."""
    found = program_on_path("hermes")
    if found is None:
        return Readiness("PATH", "warning", "no `hermes` on it", "Run `hermes install`")
    return Readiness("PATH", "ok", found)


def check_space() -> Readiness:
    """The free space of the disk of the Hermes folder."""
    home = hermes_home()
    folder = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{human_format.size(free)} free"
    if free < LOW_SPACE_BYTES:
        return Readiness("disk space", "warning", detail, "Free some space")
    return Readiness("disk space", "ok", detail)


EXAMPLES = """\
examples:
  hermes doctor
  hermes doctor --fix
  hermes doctor --json

Exit code 0: all checks passed. 1: at least one check failed; its line names the remedy.
"""
UNKNOWN_SETTING = "unknown setting"
FEW_SETTINGS = 3  # more are counted instead of listed
MAX_SECTIONS = 12
STATUS_SIGNS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red")}


class Check(Protocol):
    """The result of a check; the store has its own class of this shape."""

    @property
    def name(self) -> str:
        """The subject of the check."""
        ...

    @property
    def status(self) -> str:
        """ok, warning, failed or skipped."""
        ...

    @property
    def detail(self) -> str:
        """The result in words."""
        ...

    @property
    def advice(self) -> str:
        """The remedy; may be empty."""
        ...


class CheckResult(NamedTuple):
    """The result of a check of this module."""

    name: str
    status: str
    detail: str
    advice: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--fix", action="store_true", help="fix what can be fixed, then check again"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Run every check; exit code 1 if one failed."""
    from hermes_state.upkeep import health  # noqa: PLC0415 - `--help` does without

    if arguments.fix and history_exists() and not check_disk():
        fix(out)
    checks: list[Check] = [check_python(), *check_config(), *check_disk(), check_sandbox()]
    checks += check_hooks()
    checks += check_checkpoints()
    checks += check_readiness()
    checks += check_command_analysis()
    checks += health.examine(state_db_path())
    checks += check_chats()
    checks += check_platforms()
    checks += check_original_jobs()
    checks += check_follower()
    failed = any(check.status == "failed" for check in checks)
    if arguments.json:
        out.json({"ok": not failed, "checks": [as_dict(check) for check in checks]})
    else:
        print_checks(checks, out)
    return int(failed)


def fix(out: CommandOutput) -> None:
    """Recover from crashes, finish the index and repair it."""
    with SessionDB(purge_hook=keep_facts) as db:
        while not db.wait_for_index(0.1):
            done, total = db.index_progress() or (1, 1)
            out.progress(f"Indexing: {100 * done // total} %")
        out.progress("")
        repaired = db.statistics.repair_index()
    if repaired:
        out.note(f"Re-indexed {human_format.plural(repaired, 'session')}.")


def check_python() -> CheckResult:
    """Report the Python version."""
    text = f"{platform.python_implementation()} {platform.python_version()}"
    return CheckResult("python", "ok", text)


def check_config() -> list[CheckResult]:
    """Check the settings; those that are not used are listed together."""
    problems = ConfigFile.of_home().check()
    errors = [each.message for each in problems if each.is_error]
    warnings = [each for each in problems if not each.is_error]
    unknown = [each.name for each in warnings if each.message.startswith(UNKNOWN_SETTING)]
    others = [each.message for each in warnings if not each.message.startswith(UNKNOWN_SETTING)]
    if len(unknown) <= FEW_SETTINGS:
        others = [each.message for each in warnings]
        unknown = []
    advice = f"Edit {config_path()}"
    results = [CheckResult("settings", "failed", text, advice) for text in errors]
    results += [CheckResult("settings", "warning", text, advice) for text in others]
    if unknown:
        results.append(_unused_settings(unknown))
    return results or [CheckResult("settings", "ok", str(config_path()))]


def _unused_settings(names: list[str]) -> CheckResult:
    sections = list(dict.fromkeys(name.partition(".")[0] for name in names))
    shown = ", ".join(sections[:MAX_SECTIONS]) + (" …" if len(sections) > MAX_SECTIONS else "")
    advice = (
        "List them: hermes config check. If hermes-agent wrote them: hermes import hermes-agent"
    )
    detail = f"{len(names)} unknown, in the sections {shown}"
    return CheckResult("settings", "warning", detail, advice)


def check_hooks() -> list[CheckResult]:
    """Report shell hooks in config.yaml that never run, e.g. those of hermes-agent."""
    from hermes_conversation.shell_hooks import load_hooks  # noqa: PLC0415 - only for this check

    advice = "They block nothing. Write them as in docs/reference/hooks.md"
    return [
        CheckResult("hooks", "failed", problem, advice)
        for problem in load_hooks(ConfigFile.of_home(), None).problems
    ]


def check_disk() -> list[CheckResult]:
    """Report a disk that cannot be written; the history can still be read."""
    from hermes_state.engine.sqlite import filesystem  # noqa: PLC0415 - `--help` does without

    home = hermes_home()
    if filesystem.can_create_files(home):
        return []
    if filesystem.is_full(home):
        return [CheckResult("disk", "failed", f"{home} is on a full disk", "Free some space")]
    return [CheckResult("disk", "failed", f"{home} is read-only", "Check the permissions")]


def check_sandbox() -> CheckResult:
    """Report the sandbox in which commands of the agent run."""
    from hermes_agent.sandbox.runner import find_sandbox  # noqa: PLC0415 - only for this check

    sandbox = find_sandbox()
    if sandbox.problem is None:
        return CheckResult("sandbox", "ok", sandbox.name)
    advice = "Install bubblewrap: apt install bubblewrap (Debian, Ubuntu)"
    if sandbox.is_available:
        return CheckResult("sandbox", "warning", f"{sandbox.name}; {sandbox.problem}", advice)
    detail = f"none; every command needs approval: {sandbox.problem}"
    return CheckResult("sandbox", "warning", detail, advice)


def check_checkpoints() -> list[CheckResult]:
    """Report that changes of files cannot be undone."""
    from hermes_agent.checkpoints import turn_checkpoints  # noqa: PLC0415 - only for this check

    problem = turn_checkpoints.problem_of_checkpoints()
    advice = "Install git: apt install git (Debian, Ubuntu), brew install git (macOS)"
    return [CheckResult("checkpoints", "warning", problem, advice)] if problem else []


def check_command_analysis() -> list[CheckResult]:
    """Report a missing shell parser."""
    from hermes_agent.permissions import shell_script  # noqa: PLC0415 - only for this check

    if shell_script.is_available():
        return []
    detail = "not available on this system (no wheel of tree-sitter); every command needs approval"
    return [CheckResult("command analysis", "warning", detail, "Use a system with glibc")]


def check_chats() -> list[CheckResult]:
    """Check for pending messages and undelivered replies."""
    if not history_exists():
        return []
    try:
        with SessionDB(read_only=True) as db:
            return _chats(db) if db.engine.columns.has_own_tables else []
    except StoreError:
        return []  # the checks of the store report it


def check_platforms() -> list[CheckResult]:
    """Report chat platforms that are enabled and cannot start.

    A running gateway reports its own problems. Otherwise the requirements are checked, and the
    platforms that refused their settings in its last run are named.
    """
    from gateway.platforms.registry import PlatformRegistry  # noqa: PLC0415 - slow
    from gateway.process import config_loader  # noqa: PLC0415 - as above

    if status.running_pid() is not None:
        return []
    try:
        registry, secrets = PlatformRegistry.of_home(), config_loader.Secrets()
        enabled = config_loader.enabled_platforms(config_loader.config_of_home(), registry, secrets)
        problems = config_loader.unavailable_platforms(registry)
    except ConfigError:
        return []  # the check of the settings reports it
    last_states = (status.read_runtime_status() or {}).get("platforms", {})
    for entry in enabled:
        last = last_states.get(entry.name, {})
        refusal = str(last.get("error_message")) if last.get("state") == "refused" else ""
        problems[entry.name] = entry.missing(secrets) or refusal
    advice = "After a change, run `hermes gateway start`"
    return [
        CheckResult("gateway", "warning", f"{name} cannot start: {problem}", advice)
        for name, problem in problems.items()
        if problem
    ]


def check_original_jobs() -> list[CheckResult]:
    """Report scheduled jobs of hermes-agent that were not taken over."""
    from hermes_cli.commands.schedules import original  # noqa: PLC0415 - `--help` does without

    if not original.jobs_path().exists():
        return []
    try:
        text = original.summary()
    except UsageError as error:
        return [CheckResult("scheduled jobs", "warning", str(error))]
    advice = "`hermes cron import` imports them; hermes-agent's files are not changed"
    return [CheckResult("scheduled jobs", "warning", text, advice)] if text else []


def check_follower() -> list[CheckResult]:
    """Report whether other agents are followed as the settings ask for."""
    from hermes_cli.commands.imports.command import follow_state  # noqa: PLC0415 - `--help` does without

    state = follow_state()
    if not state.is_enabled and not state.is_running:
        return []
    return [CheckResult("import", "warning" if state.is_failing else "ok", *state.texts())]


def _chats(db: SessionDB) -> list[CheckResult]:
    known, pending = db.routes.count(), db.inbox.waiting_places()
    undelivered = [
        unsent_reply for unsent_reply in db.chats.unsent_replies() if unsent_reply.state == "failed"
    ]
    if not known and not pending and not undelivered and status.running_pid() is None:
        return []
    results = [CheckResult("chats", "ok", f"{known} known, {pending} with pending messages")]
    if pending and status.running_pid() is None:
        text = f"not running; {human_format.plural(pending, 'chat')} with pending messages"
        results.append(CheckResult("gateway", "warning", text, "Run `hermes gateway start`"))
    results += _gateway_problems()
    failed = db.inbox.count_failed()
    if failed:
        text = f"{human_format.plural(failed, 'message')} could not be handled"
        results.append(CheckResult("inbox", "warning", text, "See `hermes gateway quarantine`"))
    if undelivered:
        text = f"{len(undelivered)} not delivered; latest error: {undelivered[0].error}"
        results.append(CheckResult("replies", "warning", text, "See `hermes gateway logs`"))
    return results


def _gateway_problems() -> list[CheckResult]:
    """What the running gateway reports."""
    if status.running_pid() is None:
        return []
    problems = status.live_problems(status.read_runtime_status() or {}, time.time())
    advice = "See `hermes gateway status` and `hermes gateway logs`"
    return [CheckResult("gateway", "warning", problem, advice) for problem in problems]


def print_checks(checks: Sequence[Check], out: CommandOutput) -> None:
    """Print one line per check, followed by its advice."""
    for check in checks:
        sign, style = STATUS_SIGNS.get(check.status, ("-", "dim"))
        out.styled((f"{sign} ", style), (check.name, "bold"), (f": {check.detail}", ""))
        if check.advice and check.status != "ok":
            out.hint(f"    {check.advice}")


def as_dict(check: Check) -> dict[str, str]:
    """A check as a dict."""
    return {
        "name": check.name,
        "status": check.status,
        "detail": check.detail,
        "advice": check.advice or "",
    }
