"""`hermes hooks`: inspect hooks and the event log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import hermes_plugin_host
from hermes_agent.project.files import FileKind
from hermes_agent.project.trust import assess_project
from hermes_agent.shell_hooks.config import EVENTS
from hermes_agent.shell_hooks.failures import failures
from hermes_cli import history
from hermes_cli.filters import parse_positive
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation import boundary_delivery
from hermes_conversation.shell_hooks import load_hooks
from hermes_core import human_format
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.hooks import HOOKS, spec

if TYPE_CHECKING:
    import argparse

    from hermes_agent.project.trust import ProjectTrust
    from hermes_agent.shell_hooks.config import ShellHook, ShellHooks
    from hermes_agent.shell_hooks.failures import HookFailure
    from hermes_cli.output import CommandOutput
    from hermes_state.delivery.boundaries import BoundaryEvent

EXAMPLES = """\
examples:
  hermes hooks list
  hermes hooks log --limit 5
  hermes hooks replay 0198f2c1
  hermes hooks test on_session_finalize session_id=test platform=cli
"""
LIST_COLUMNS = (
    TableColumn("hook", style="cyan"),
    TableColumn("plugins"),
    TableColumn("last error", optional=True),
    TableColumn("called when", flexible=True),
)
SHELL_COLUMNS = (
    TableColumn("event", style="cyan"),
    TableColumn("matcher", optional=True),
    TableColumn("last error", optional=True),
    TableColumn("command", flexible=True),
    TableColumn("from", flexible=True, optional=True),
)
LOG_COLUMNS = (
    TableColumn("event", style="cyan"),
    TableColumn("when"),
    TableColumn("kind"),
    TableColumn("reason", optional=True),
    TableColumn("session", flexible=True, least=20),
    TableColumn("state"),
    TableColumn("tries", right=True, optional=True),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_command(
        actions, "list", "list hooks and the plugins registered for them", "hermes hooks list",
        run=print_list, has_json=True,
    )  # fmt: skip
    log = add_command(
        actions, "log", "list session boundary events and their delivery", "hermes hooks log",
        "hermes hooks log --session last --json", run=print_log,
    )  # fmt: skip
    log.add_argument("--session", metavar="ID", help="filter by session")
    log.add_argument(
        "--limit", type=parse_positive, default=20, help="maximum number (default: 20)"
    )
    add_json_option(log)
    replay_parser = add_command(
        actions, "replay", "deliver an event to plugins again, with the same event ID",
        "hermes hooks replay 0198f2c1", run=replay,
    )  # fmt: skip
    replay_parser.add_argument("event", metavar="EVENT", help="event ID or a prefix of it")
    add_json_option(replay_parser)
    test_parser = add_command(
        actions, "test", "call a hook with the given arguments",
        "hermes hooks test on_session_start session_id=x platform=cli", run=test,
    )  # fmt: skip
    test_parser.add_argument("hook", metavar="HOOK", help="hook, as shown by `hermes hooks list`")
    test_parser.add_argument("facts", metavar="NAME=VALUE", nargs="*", help="argument of the hook")
    add_json_option(test_parser)


class ListedHook(NamedTuple):
    """A hook in JSON output."""

    name: str
    facts: list[str]
    moment: str
    returns: str
    plugins: list[str]
    last_error: str
    commands: list[ListedCommand]


class ListedCommand(TypedDict):
    """A shell command for an event in JSON output."""

    matcher: str
    command: str
    timeout: float
    source: str
    last_error: str


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print all hooks."""
    manager = hermes_plugin_host.active()
    rows: list[ListedHook] = []
    for hook in HOOKS:
        callbacks = manager.callbacks(hook.name)
        rows.append(
            ListedHook(
                name=hook.name,
                facts=sorted(hook.facts),
                moment=hook.moment,
                returns=hook.returns,
                plugins=[callback.plugin for callback in callbacks],
                last_error=next((c.last_error for c in callbacks if c.last_error), ""),
                commands=[],
            )
        )
    trust = assess_project(Path.cwd())
    found = load_hooks(ConfigFile.of_home(), trust)
    if arguments.json:
        out.json([row._asdict() for row in [*rows, *_shell_rows(found)]])
        return 0
    out.table(
        LIST_COLUMNS,
        [(row.name, ", ".join(row.plugins), row.last_error, row.moment) for row in rows],
    )
    _print_shell_hooks(found, trust, out)
    return 0


def _shell_rows(found: ShellHooks) -> list[ListedHook]:
    """A row for each event with shell commands."""
    failed = failures()
    rows = []
    for event in EVENTS:
        commands = [_listed(hook, failed) for hook in found.hooks if hook.event == event]
        if commands:
            errors = (command["last_error"] for command in commands if command["last_error"])
            moment = "shell commands, see docs/reference/hooks.md"
            rows.append(ListedHook(event, [], moment, "", [], next(errors, ""), commands))
    return rows


def _listed(hook: ShellHook, failed: dict[str, HookFailure]) -> ListedCommand:
    failure = failed.get(hook.label)
    error = f"{failure.error} ({failure.times} times)" if failure else ""
    return ListedCommand(
        matcher=hook.matcher,
        command=hook.command,
        timeout=hook.timeout_seconds,
        source=hook.source,
        last_error=error,
    )


def _print_shell_hooks(found: ShellHooks, trust: ProjectTrust, out: CommandOutput) -> None:
    if found.hooks:
        out.text()
        out.table(
            SHELL_COLUMNS,
            [
                (row.name, item["matcher"], item["last_error"], item["command"], item["source"])
                for row in _shell_rows(found)
                for item in row.commands
            ],
        )
    for problem in found.problems:
        out.text(problem, "yellow")
    if any(item.file.kind is FileKind.HOOKS for item in trust.pending):
        out.hint("Hooks of this project are ignored until you run `hermes trust`.")


def print_log(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print events, newest first."""
    if not history.exists():
        out.json([]) if arguments.json else out.text(history.no_history_text())
        return 0
    with history.open_for_reading() as db:
        session_id = db.lookup.resolve(arguments.session) if arguments.session else None
        events = db.boundaries.recent(session_id, limit=arguments.limit)
    if arguments.json:
        out.json([event._asdict() for event in events])
    elif events:
        out.table(LOG_COLUMNS, [_row(event) for event in events])
        for event in events:
            if event.error:
                out.text(f"{event.event_id[:12]}: {event.error}", "yellow")
    else:
        out.text("No events yet.")
    return 0


def _row(event: BoundaryEvent) -> tuple[str, ...]:
    return (
        event.event_id,
        human_format.local(event.occurred_at),
        event.kind,
        event.reason,
        event.session_id,
        event.state,
        str(event.attempts),
    )


def replay(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Deliver an event again, now."""
    with history.open_for_writing() as db:
        matches = [
            event
            for event in db.boundaries.recent(limit=-1)
            if event.event_id.startswith(arguments.event)
        ]
        if not matches:
            raise UsageError(
                f"No event ID starts with '{arguments.event}'. See `hermes hooks log`."
            )
        if len(matches) > 1:
            raise UsageError(f"{len(matches)} event IDs start with '{arguments.event}'.")
        db.boundaries.replay(matches[0].event_id)
        boundary_delivery.make_delivery(db).deliver_due()
        event = next(
            boundary
            for boundary in db.boundaries.recent(matches[0].session_id, limit=-1)
            if boundary.event_id == matches[0].event_id
        )
    if arguments.json:
        out.json(event._asdict())
    else:
        out.text(f"{event.event_id} {event.state}")
        if event.error:
            out.text(event.error, "yellow")
    return 0 if event.state == "delivered" else 1


def test(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Call a hook with the given arguments."""
    spec(arguments.hook)
    facts = {}
    for pair in arguments.facts:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"Invalid argument '{pair}'. Use NAME=VALUE.")
        facts[name] = value
    outcomes = hermes_plugin_host.active().call(arguments.hook, facts)
    if arguments.json:
        out.json([outcome._asdict() for outcome in outcomes])
    elif not outcomes:
        out.text(f"No plugin registered for {arguments.hook}.")
    for outcome in [] if arguments.json else outcomes:
        answer = outcome.error or f"answered {outcome.result!r}"
        out.text(f"{outcome.plugin}: {answer} ({outcome.seconds * 1000:.0f} ms)")
    return int(any(outcome.is_failure for outcome in outcomes))
