"""Metrics of shell commands, from the programs that they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.classification import shell_commands

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionView


def commits(session: SessionView) -> Events:
    """Shell calls that ran `git commit`."""
    return session.command_events(frozenset({"git commit"}))


def pushes(session: SessionView) -> Events:
    """Shell calls that ran `git push`."""
    return session.command_events(frozenset({"git push"}))


def merges(session: SessionView) -> Events:
    """Shell calls that merged, rebased or cherry-picked."""
    return session.command_events(shell_commands.MERGE_COMMANDS)


def git_rescues(session: SessionView) -> Events:
    """Shell calls that undid changes: git revert, reset, restore, stash or bisect."""
    return session.command_events(shell_commands.GIT_RESCUE_COMMANDS)


def git_tags(session: SessionView) -> Events:
    """Shell calls that ran `git tag`."""
    return session.command_events(frozenset({"git tag"}))


def test_runs(session: SessionView) -> Events:
    """Shell calls that ran tests."""
    return session.command_events(shell_commands.TEST_COMMANDS)


def installs(session: SessionView) -> Events:
    """Shell calls that installed packages."""
    return session.command_events(shell_commands.INSTALL_COMMANDS)


def builds(session: SessionView) -> Events:
    """Shell calls that built something."""
    return session.command_events(shell_commands.BUILD_COMMANDS)


def checks(session: SessionView) -> Events:
    """Shell calls that ran a linter, a formatter or a type checker."""
    return session.command_events(shell_commands.CHECK_COMMANDS)


def container_commands(session: SessionView) -> Events:
    """Shell calls that used Docker or Podman."""
    return session.program_events(shell_commands.CONTAINER_PROGRAMS)


def deploys(session: SessionView) -> Events:
    """Shell calls that used a tool for servers and clouds."""
    return session.program_events(shell_commands.DEPLOY_PROGRAMS)


def database_commands(session: SessionView) -> Events:
    """Shell calls that opened a database shell."""
    return session.program_events(shell_commands.DATABASE_PROGRAMS)


def http_requests(session: SessionView) -> Events:
    """Shell calls that made a web request."""
    return session.program_events(shell_commands.HTTP_PROGRAMS)


def remote_commands(session: SessionView) -> Events:
    """Shell calls that reached another machine."""
    return session.program_events(shell_commands.REMOTE_PROGRAMS)
