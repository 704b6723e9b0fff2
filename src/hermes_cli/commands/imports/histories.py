"""Imports conversations of other agents, once or until stopped."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli.output import NO_ANSWERS, YES_ANSWERS, TableColumn, ask
from hermes_conversation import boundary_delivery
from hermes_conversation.agent_imports import follow_options, make_follower, registry_of_home
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.signals import stop_signals
from hermes_import.importer import AgentImport, ImportOptions
from hermes_state.imports.repository import ORIGINAL_AGENT
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hermes_cli.output import CommandOutput
    from hermes_import.importer import Progress, SourceReport
    from hermes_import.registry import FoundHistory, HistoryFacts

PATIENCE_SECONDS: Final = 1.0
COLUMNS: Final = (
    TableColumn("agent", style="cyan"),
    TableColumn("place", flexible=True),
    TableColumn("conversations", right=True),
    TableColumn("size", right=True, optional=True),
    TableColumn("new or changed", right=True),
)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Import, or show what can be imported."""
    if arguments.follow:
        return _follow(arguments, out)
    if arguments.agent == ORIGINAL_AGENT and not _is_file(arguments.path):
        from hermes_cli.commands.imports import original_home  # noqa: PLC0415 - a command itself

        return original_home.run(arguments, out)
    if arguments.profile or arguments.all_profiles:
        raise UsageError("Only `hermes import hermes-agent` has profiles.")
    found = _find(arguments)
    if not found:
        _print_nothing_found(arguments, out)
        return 0
    options = _options(arguments)
    with SessionDB(purge_hook=keep_facts) as db:
        is_chosen = bool(arguments.agent) or arguments.yes or arguments.dry_run
        if not is_chosen:
            found = _choose(db, found, arguments, out)
        if not found:
            return 0
        reports = [_import(db, each, options, out) for each in found]
    return _report(reports, options, out, is_json=arguments.json)


def _is_file(path: Path | None) -> bool:
    return path is not None and path.expanduser().is_file()


def import_file(path: str, arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Import an export whose format is recognized."""
    options = ImportOptions(is_dry_run=arguments.dry_run)
    with SessionDB(purge_hook=keep_facts) as db:
        reports = [_import(db, registry_of_home().recognize(path), options, out)]
    return _report(reports, options, out, is_json=arguments.json)


def _report(
    reports: list[SourceReport], options: ImportOptions, out: CommandOutput, *, is_json: bool
) -> int:
    if is_json:
        out.json([_facts(report) for report in reports])
    else:
        print_report(reports, out, is_dry_run=options.is_dry_run)
    return 1 if any(report.failures for report in reports) else 0


def _options(arguments: argparse.Namespace) -> ImportOptions:
    project: Path | None = arguments.project
    return ImportOptions(
        since=arguments.since or 0.0,
        project=project.expanduser().absolute() if project else None,
        is_dry_run=arguments.dry_run,
    )


def _follow(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Import new messages of agents on this machine until a signal ends it."""
    if arguments.path or arguments.dry_run or arguments.project or arguments.since:
        raise UsageError("--follow imports everything on this machine: give at most an agent.")
    if arguments.agent == ORIGINAL_AGENT:
        raise UsageError("hermes-agent is not followed: repeat `hermes import hermes-agent`.")
    options = follow_options(ConfigFile.of_home().settings())
    if arguments.agent:
        options = options._replace(names=(registry_of_home().get(arguments.agent).name,))

    def show(report: SourceReport) -> None:
        if arguments.json:
            out.json_line(_facts(report))
        elif report.new or report.messages or report.failures:
            print_report([report], out, is_dry_run=False)
        out.flush()

    with SessionDB(purge_hook=keep_facts) as db:
        follower = make_follower(db, options, show)
        delivery = boundary_delivery.make_delivery(db)
        if boundary_delivery.has_consumers():
            delivery.start()
        for number in stop_signals():
            signal.signal(number, lambda _number, _frame: follower.stop())
        out.note("Following other agents. Press Ctrl+C to stop.")
        is_ours = follower.run(Path.home(), os.environ)
        delivery.stop()
    if not is_ours:
        raise UsageError(
            "Another process follows other agents already: the gateway, `hermes serve`, or "
            "another `hermes import --follow`."
        )
    return 0


def _find(arguments: argparse.Namespace) -> list[FoundHistory]:
    registry = registry_of_home()
    if arguments.agent is None:
        return registry.found_in(Path.home(), os.environ)
    if arguments.agent in registry.names:
        if arguments.path is not None:
            return [registry.found_at(arguments.agent, arguments.path.expanduser().absolute())]
        found = registry.found_of(arguments.agent, Path.home(), os.environ)
        return [found] if found is not None else []
    return [registry.recognize(arguments.agent)]


def _print_nothing_found(arguments: argparse.Namespace, out: CommandOutput) -> None:
    if arguments.json:
        out.json([])
        return
    if arguments.agent is None:
        out.text("No histories of other agents found on this machine.")
        out.hint(
            "If they are elsewhere, give the folder: hermes import claude-code /path/to/.claude"
        )
        return
    source = registry_of_home().get(arguments.agent)
    out.text(f"No history of {source.label} found on this machine.")
    out.hint(f"Give its folder or file: hermes import {source.name} PATH")


def _choose(
    db: SessionDB, found: list[FoundHistory], arguments: argparse.Namespace, out: CommandOutput
) -> list[FoundHistory]:
    """Show what was found; returns what to import."""
    facts = print_found(db, found, out, is_json=arguments.json)
    if arguments.json or not out.is_watched:
        if not arguments.json:
            out.hint("Import all of it: hermes import --yes. One agent: hermes import NAME.")
        return []
    if not any(each.new for each in facts):
        out.text("Everything is imported.")
        return []
    return _chosen(found, ask("Import what is new? [y/N, or names of agents] ", out))


def _chosen(found: list[FoundHistory], answer: str) -> list[FoundHistory]:
    """The histories that an answer names: yes for all, or agents."""
    names = answer.lower().replace(",", " ").split()
    if not names or names[0] in NO_ANSWERS:
        return []
    if names[0] in YES_ANSWERS:
        return found
    known = {each.source.name: each for each in found}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"Not in the list: {', '.join(unknown)}. Agents: {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)]


def _import(
    db: SessionDB, found: FoundHistory, options: ImportOptions, out: CommandOutput
) -> SourceReport:
    began = time.monotonic()

    def show(progress: Progress) -> None:
        if time.monotonic() - began > PATIENCE_SECONDS:
            done, total = map(human_format.size, (progress.read_bytes, progress.of_bytes))
            out.progress(f"Importing from {found.source.label}: {done} of {total}")

    report = AgentImport(db, found.source, options, show).run(found.units())
    out.progress("")
    return report


def _facts(report: SourceReport) -> dict[str, object]:
    return {**asdict(report), "unknown": dict(report.unknown)}


def print_found(
    db: SessionDB, found: Sequence[FoundHistory], out: CommandOutput, *, is_json: bool
) -> list[HistoryFacts]:
    """List the histories on this machine."""
    facts = [each.facts(db) for each in found]
    if is_json:
        out.json([each._asdict() for each in facts])
        return facts
    out.table(
        COLUMNS,
        [
            (
                each.agent,
                ", ".join(each.places),
                human_format.number(each.conversations),
                human_format.size(each.size_bytes),
                human_format.number(each.new),
            )
            for each in facts
        ],
    )
    return facts


def print_report(reports: Sequence[SourceReport], out: CommandOutput, *, is_dry_run: bool) -> None:
    """Print what was imported, what was not, and why."""
    verb = "would import" if is_dry_run else "imported"
    for report in reports:
        new = human_format.plural(report.new, "conversation")
        more = f", {report.extended} extended" if report.extended else ""
        messages = human_format.plural(report.messages, "message")
        out.text(f"{report.agent}: {verb} {new}{more} with {messages}.")
        _print_omissions(report, out)


def _print_omissions(report: SourceReport, out: CommandOutput) -> None:
    if report.deleted:
        what = human_format.plural(report.deleted, "conversation")
        out.text(f"  {what} not imported: deleted here.")
    if report.taken:
        what = human_format.plural(report.taken, "conversation")
        out.text(f"  {what} not imported: already in the history.")
    if report.other_project:
        out.text(
            f"  {human_format.plural(report.other_project, 'file')} of other projects skipped."
        )
    for kind, count in report.unknown.most_common():
        out.text(f"  {human_format.plural(count, 'record')} of unknown kind '{kind}' not imported.")
    for path, error in report.failures.items():
        out.note(f"  not read: {path}: {error}")
