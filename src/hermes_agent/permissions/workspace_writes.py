"""What may be written in a working folder without asking, outside of a turn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from hermes_agent.permissions.file_access import FileAccess
from hermes_agent.permissions.file_writes import write_findings
from hermes_agent.permissions.path_zones import PathContext
from hermes_agent.permissions.verdicts import Level
from hermes_core.paths import hermes_home

NEEDS_APPROVAL: Final = "{reason}; restore it in a terminal with `hermes checkpoints restore`"


def write_problem(path: Path, folder: Path) -> str:
    """Why a file of a working folder is not written unasked; empty if it is.

    The rules are those of the mode `workspace`, without what a person has allowed.
    """
    context = PathContext(
        home=Path.home(),
        hermes_home=hermes_home(),
        free=(folder,),
        bases=(folder,),
        own_pid=os.getpid(),
    )
    if FileAccess(context.hermes_home, context.home).is_hidden(path, folder):
        return NEEDS_APPROVAL.format(reason="belongs to Hermes or holds credentials")
    findings = (each for each in write_findings(str(path), context) if each.level >= Level.RISK)
    finding = next(findings, None)
    return "" if finding is None else NEEDS_APPROVAL.format(reason=finding.reason)
