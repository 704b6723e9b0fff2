"""What was run in the shell: from the commands' own words, not from talk about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.classification import shell_commands

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionFacts


def commits(s: SessionFacts) -> Events:
    """Shell calls that ran `git commit`."""
    return s.ran(frozenset({"git commit"}))


def pushes(s: SessionFacts) -> Events:
    """Shell calls that ran `git push`."""
    return s.ran(frozenset({"git push"}))


def merges(s: SessionFacts) -> Events:
    """Shell calls that merged, rebased or cherry-picked."""
    return s.ran(shell_commands.MERGES)


def git_rescues(s: SessionFacts) -> Events:
    """Shell calls that went back: git revert, reset, restore, stash or bisect."""
    return s.ran(shell_commands.RESCUES)


def git_tags(s: SessionFacts) -> Events:
    """Shell calls that ran `git tag`."""
    return s.ran(frozenset({"git tag"}))


def test_runs(s: SessionFacts) -> Events:
    """Shell calls that ran tests."""
    return s.ran(shell_commands.TESTS)


def installs(s: SessionFacts) -> Events:
    """Shell calls that installed packages."""
    return s.ran(shell_commands.INSTALLS)


def builds(s: SessionFacts) -> Events:
    """Shell calls that built something."""
    return s.ran(shell_commands.BUILDS)


def checks(s: SessionFacts) -> Events:
    """Shell calls that ran a linter, a formatter or a type checker."""
    return s.ran(shell_commands.CHECKS)


def container_commands(s: SessionFacts) -> Events:
    """Shell calls that used Docker or Podman."""
    return s.ran_program(shell_commands.CONTAINERS)


def deploys(s: SessionFacts) -> Events:
    """Shell calls that used a tool for servers and clouds."""
    return s.ran_program(shell_commands.DEPLOYERS)


def database_commands(s: SessionFacts) -> Events:
    """Shell calls that opened a database's own shell."""
    return s.ran_program(shell_commands.DATABASES)


def http_requests(s: SessionFacts) -> Events:
    """Shell calls that made a web request."""
    return s.ran_program(shell_commands.REQUESTERS)


def remote_commands(s: SessionFacts) -> Events:
    """Shell calls that reached another machine."""
    return s.ran_program(shell_commands.REMOTES)
