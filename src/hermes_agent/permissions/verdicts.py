"""Verdicts on a tool call, and the findings they are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes_agent.tools.prompter import ApprovalRequest


class Allow(NamedTuple):
    """The call may run."""


class NeedsApproval(NamedTuple):
    """The call runs if a person approves it."""

    request: ApprovalRequest


class Refuse(NamedTuple):
    """The call is refused, for this reason."""

    reason: str


Verdict = Allow | NeedsApproval | Refuse


class Level(IntEnum):
    """The severity of a finding."""

    WRITE = 1  # changes files where the agent may: matters to the mode plan alone
    RISK = 2  # asked for, unless the mode is full
    DOUBT = 3  # could be one that never runs: asked for in every mode
    FLOOR = 4  # never runs


class RiskFinding(NamedTuple):
    """Something that a command does: a stable key, a sentence for people, its severity."""

    key: str
    reason: str
    level: Level = Level.RISK
    excerpt: str = ""  # the part of the command, as it is written


# An answer for one of these covers that very command alone: the key says too little about
# what a next command with the same key would do. Every key that lifts a limit of the sandbox
# other than the network is one: the limit is lifted for all of a command line.
EXACT_KEYS = frozenset(
    {
        "chmod-recursive",
        "chown-recursive",
        "cloud",
        "computed-command",
        "computed-script",
        "containers",
        "crontab",
        "docker-host",
        "docker-remove",
        "download-to-shell",
        "find-delete",
        "firewall",
        "forge",
        "git-clean",
        "git-discard",
        "git-internals",
        "git-push",
        "git-push-force",
        "git-reset-hard",
        "git-rewrite",
        "global-packages",
        "hermes-files",
        "home-dotfile",
        "inline-code",
        "kill",
        "kubectl-delete",
        "local-socket",
        "network-shell",
        "not-reading",
        "pipe-to-shell",
        "publish",
        "rm-recursive",
        "schedule",
        "sql-delete",
        "ssh",
        "sudo",
        "system-packages",
        "system-settings",
        "system-users",
        "systemctl",
        "unparsable",
        "write-outside",
        "write-unknown",
    }
)

# What the analysis cannot know and the sandbox decides: not asked for where there is one.
SANDBOX_KEYS = frozenset({"write-unknown"})
