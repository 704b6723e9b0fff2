from __future__ import annotations

import pytest

from hermes_agent.permissions.approvals import Approvals, Caller
from hermes_agent.permissions.verdicts import Allow, NeedsApproval, Refuse

OWN_PID = 4242
NAMES = {Allow: "allow", NeedsApproval: "ask", Refuse: "refuse"}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    return folder


@pytest.fixture
def caller(workspace):
    return Caller("s1", "t1", workspace)


@pytest.fixture
def approvals(hermes_home):
    return Approvals(own_pid=OWN_PID, is_sandboxed=True)


@pytest.fixture
def verdict(caller, hermes_home):
    """The verdict on a command in a mode, as a word."""
    by_mode = {}

    def review(command, mode="workspace"):
        # The sandbox enforces plan mode; without one the analysis alone must tell who reads.
        is_sandboxed = mode != "plan"
        approvals = by_mode.setdefault(
            mode, Approvals(mode, own_pid=OWN_PID, is_sandboxed=is_sandboxed)
        )
        return NAMES[type(approvals.command(command, caller))]

    return review
