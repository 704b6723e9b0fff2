"""The answers to "may this be done?", and the findings they are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes_agent.tools.base import ApprovalRequest


class Allow(NamedTuple):
    """It may be done."""


class NeedsApproval(NamedTuple):
    """Somebody must be asked."""

    request: ApprovalRequest


class Refuse(NamedTuple):
    """It is not done, and this is why."""

    reason: str


Verdict = Allow | NeedsApproval | Refuse


class Level(IntEnum):
    """How grave a finding is."""

    WRITE = 1  # changes files where the agent may: matters to the mode read_only alone
    RISK = 2  # asked for, unless the mode is full
    DOUBT = 3  # could be one that never runs: asked for in every mode
    FLOOR = 4  # never runs


class RiskFinding(NamedTuple):
    """Something that a command does: a stable key, a sentence for people, how grave it is."""

    key: str
    reason: str
    level: Level = Level.RISK


# An answer for one of these covers that very command alone: the key says too little about
# what a next command with the same key would do.
EXACT_KEYS = frozenset(
    {
        "computed-command",
        "computed-script",
        "download-to-shell",
        "hermes-files",
        "inline-code",
        "network-shell",
        "not-reading",
        "pipe-to-shell",
        "ssh",
        "sudo",
        "unparsable",
        "write-outside",
    }
)
