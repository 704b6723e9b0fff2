"""`hermes dashboard confirm`: apply changes that the page requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.platforms.options import PlatformOptions
from hermes_cli import history
from hermes_cli.output import TableColumn, confirm
from hermes_conversation.mcp.server_list import add_server
from hermes_conversation.purge_hook import keep_facts
from hermes_conversation.scheduled_jobs import JobRequest, create_job, local_requester
from hermes_core import paths
from hermes_core.config.file import ConfigFile
from hermes_core.config.webhook_routes import write_route
from hermes_core.errors import HermesError, UsageError
from hermes_core.roles import Role
from hermes_dashboard.pending_changes import (
    PendingChanges,
    RequestedJob,
    RequestedRole,
    RequestedRoute,
    RequestedServer,
    facts_of,
    texts_of,
)
from hermes_plugin_host import activation
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from hermes_cli.output import CommandOutput
    from hermes_dashboard.pending_changes import PendingChange

COLUMNS: Final = (
    TableColumn("code", style="cyan"),
    TableColumn("change", flexible=True),
    TableColumn("now", flexible=True),
    TableColumn("new", flexible=True),
)
TITLES: Final = {
    "setting": "setting {name}",
    "plugin": "plugin {name}",
    "job": "scheduled job {name}",
    "platform": "option {name}",
    "pairing": "access of {name}",
    "role": "role of {name}",
    "mcp_server": "MCP server {name}",
    "webhook_route": "webhook route {name}",
}
AT_ONCE: Final = {"job", "pairing", "role"}  # running processes read these from the history
UNCHANGED: Final = "Nothing was changed. A request stays pending until it expires."
RESTART: Final = "Applied. Restart running Hermes processes if they should use it at once."


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Show changes and apply them after a confirmation; without a code, list the changes."""
    changes = PendingChanges(paths.hermes_home())
    if not arguments.codes:
        return _print_list(changes, arguments, out)
    chosen, unknown = _find_all(changes, arguments.codes)
    if not chosen:
        raise UsageError("\n".join(unknown))
    if not _is_wanted(chosen, arguments, out):
        out.text(UNCHANGED)
        return 1
    problems = {change: _apply_pending(changes, change) for change in chosen}
    failed = [f"{_title(change)}: {problem}" for change, problem in problems.items() if problem]
    if failed or unknown:
        applied, total = len(problems) - len(failed), len(problems) + len(unknown)
        out.text(f"Applied {applied} of {total} changes." if applied else UNCHANGED)
        raise UsageError("\n".join([*failed, *unknown]))
    is_used_at_once = all(change.kind in AT_ONCE for change in chosen)
    out.text("Applied." if is_used_at_once else RESTART)
    return 0


def _find_all(
    changes: PendingChanges, codes: Iterable[str]
) -> tuple[list[PendingChange], list[str]]:
    """The changes that wait, each once, and the problems of the other codes."""
    found: dict[str, PendingChange] = {}
    problems: list[str] = []
    for code in codes:
        try:
            change = changes.find(code)
        except UsageError as error:
            problems.append(str(error))
        else:
            found[change.code] = change
    return list(found.values()), problems


def _is_wanted(
    chosen: Sequence[PendingChange], arguments: argparse.Namespace, out: CommandOutput
) -> bool:
    """Show the changes and ask once for all of them."""
    config = ConfigFile.of_home()
    out.text(f"The dashboard requests {'this change' if len(chosen) == 1 else 'these changes'}:")
    out.pairs([(_title(change), _old_and_new(change, config)) for change in chosen])
    out.flush()
    question = "Apply it?" if len(chosen) == 1 else "Apply all of them?"
    return confirm(question, out, is_confirmed=arguments.yes)


def _old_and_new(change: PendingChange, config: ConfigFile) -> str:
    texts = texts_of(change, config)
    return f"{texts.old} -> {texts.new}"


def _apply_pending(changes: PendingChanges, change: PendingChange) -> str:
    """Apply a change that still waits; why that is not possible, or an empty text."""
    try:
        _apply(changes.find(change.code))
    except HermesError as error:
        return str(error)
    changes.mark_applied(change.code)
    return ""


def _apply(change: PendingChange) -> None:
    if change.kind == "setting":
        _apply_setting(change)
    elif change.kind == "platform":
        _apply_option(change)
    elif change.kind == "plugin":
        _enable_plugin(change.name)
    elif change.kind == "mcp_server":
        fields = RequestedServer.of_text(change.value or "").fields
        add_server(ConfigFile.of_home(), change.name, fields)
    elif change.kind == "webhook_route":
        _apply_route(change)
    else:
        with SessionDB(purge_hook=keep_facts) as db:
            if change.kind == "job":
                job = RequestedJob.of_text(change.value or "")
                request = JobRequest(job.schedule, job.prompt, name=job.name, zone=job.zone)
                create_job(db, local_requester(), request)
            else:
                _grant(db, change)


def _apply_setting(change: PendingChange) -> None:
    if change.value is None:
        ConfigFile.of_home().unset(change.name)
    else:
        ConfigFile.of_home().set(change.name, change.value)


def _apply_option(change: PendingChange) -> None:
    option = PlatformOptions.find(change.name)
    if change.value is None:
        PlatformOptions().unset(option)
    else:
        PlatformOptions().set(option, change.value)


def _apply_route(change: PendingChange) -> None:
    config, request = ConfigFile.of_home(), RequestedRoute.of_text(change.value or "")
    write_route(config, change.name, request.options)
    if request.secret:
        config.set_variable(request.options.secret_env, request.secret)


def _enable_plugin(name: str) -> None:
    if not history.exists():
        activation.enable(name, None)
        return
    with history.open_for_writing() as db:
        activation.enable(name, db.boundaries)


def _grant(db: SessionDB, change: PendingChange) -> None:
    """Approve a person with the pairing code, or set the role of one."""
    platform, _, user_id = change.name.partition(":")
    request = RequestedRole.of_text(change.value or "")
    if change.kind == "role":
        db.people.set_role(platform, user_id, request.new)
        return
    role = None if request.new == Role.MEMBER else request.new  # members have no stored role
    if db.pairings.approve(platform, request.code, role) is None:
        raise UsageError(
            f"The pairing code of {change.name} has expired or was used. Ask the user to write to "
            "the agent again for a new one."
        )


def _print_list(changes: PendingChanges, arguments: argparse.Namespace, out: CommandOutput) -> int:
    config = ConfigFile.of_home()
    pending = [change for change in changes.current() if change.state == "pending"]
    if arguments.json:
        out.json([facts_of(change, config) for change in pending])
    elif not pending:
        out.hint("No changes are waiting for confirmation.")
    else:
        out.table(
            COLUMNS,
            [(change.code, _title(change), *texts_of(change, config)) for change in pending],
        )
        out.hint("Apply them with `hermes dashboard confirm CODE …`.")
    return 0


def _title(change: PendingChange) -> str:
    return TITLES[change.kind].format(name=change.name)
