"""What was run in the shell: from the commands' own words, not from talk about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.classification import command_kinds

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, Session


def commits(s: Session) -> Events:
    """Shell calls that ran `git commit`."""
    return s.ran(frozenset({"git commit"}))


def pushes(s: Session) -> Events:
    """Shell calls that ran `git push`."""
    return s.ran(frozenset({"git push"}))


def merges(s: Session) -> Events:
    """Shell calls that merged, rebased or cherry-picked."""
    return s.ran(command_kinds.MERGES)


def git_rescues(s: Session) -> Events:
    """Shell calls that went back: git revert, reset, restore, stash or bisect."""
    return s.ran(command_kinds.RESCUES)


def git_tags(s: Session) -> Events:
    """Shell calls that ran `git tag`."""
    return s.ran(frozenset({"git tag"}))


def test_runs(s: Session) -> Events:
    """Shell calls that ran tests."""
    return s.ran(command_kinds.TESTS)


def installs(s: Session) -> Events:
    """Shell calls that installed packages."""
    return s.ran(command_kinds.INSTALLS)


def builds(s: Session) -> Events:
    """Shell calls that built something."""
    return s.ran(command_kinds.BUILDS)


def checks(s: Session) -> Events:
    """Shell calls that ran a linter, a formatter or a type checker."""
    return s.ran(command_kinds.CHECKS)


def container_commands(s: Session) -> Events:
    """Shell calls that used Docker or Podman."""
    return s.ran_program(command_kinds.CONTAINERS)


def deploys(s: Session) -> Events:
    """Shell calls that used a tool for servers and clouds."""
    return s.ran_program(command_kinds.DEPLOYERS)


def database_commands(s: Session) -> Events:
    """Shell calls that opened a database's own shell."""
    return s.ran_program(command_kinds.DATABASES)


def http_requests(s: Session) -> Events:
    """Shell calls that made a web request."""
    return s.ran_program(command_kinds.REQUESTERS)


def remote_commands(s: Session) -> Events:
    """Shell calls that reached another machine."""
    return s.ran_program(command_kinds.REMOTES)
