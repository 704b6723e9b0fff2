"""Which tests run in the same worker: those that share an expensive server or data.

pytest-xdist 3.8 reads its `xdist_group` marks into an attribute that pytest 9.2 ignores, so
`--dist loadgroup` distributes marked tests over all workers (pytest-xdist issue 1386).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xdist.scheduler import LoadScopeScheduling

from support.postgres import IS_ON_POSTGRES

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

# The tests that read the demo history, which takes seconds to make.
DEMO_GROUP: Final = "browser, demo"
# The first pattern that a test's id matches names its group. The groups start in this order, before
# all other tests: those with the most CPU time first, because a group that starts late ends last.
# The groups of browser tests need about the same CPU time.
GROUPS: Final = {
    DEMO_GROUP: r"tests/browser/test_(every_page|keyboard|analytics|many_sessions"
    r"|achievements_page\.py::test_(badges|the_evidence|a_card|a_year|a_story|the_latest_badge)"
    r"|sessions\.py::test_(matches|filters|a_day))",
    "browser, chat": r"tests/browser/test_(chat|system|overview|memory|data|model)_",
    "browser": r"tests/browser/",
    "synapse": r"tests/gateway/test_(matrix(_\w+)?\.py|deletions\.py::.*matrix)"
    r"|.*test_platform_kills\.py::.*matrix\]",
    "postgresql": r"tests/state/(.*\[postgresql|test_(store_copy|postgres))|tests/cli/test_store\b"
    r"|tests/a[a-z]*/test_shared_(ledger|scan)",
    "benchmarks": r"tests/benchmarks/test_run\.py",
    "launcher": r"tests/cli/test_launcher\.py",
    # Their libraries take half a second to import.
    "OpenAPI": r"tests/dashboard/test_openapi\.py",
    "MCP client": r"tests/cli/test_mcp_serve\.py",
    "API clients": r"tests/acceptance/test_api_clients\.py",
    # Its library takes seconds to import, in each process that runs one of these tests.
    "telegram": r"tests/gateway/test_(telegram|live_reply|buttons)"
    r"|.*test_(supervision|nodes|platform_kills)\.py::.*\[telegram",
    "local model": r"tests/agent/test_local_model\.py",
    "mail": r"tests/gateway/test_email\.py|.*test_platform_kills\.py::.*email\]",
    "scan faults": r"tests/acceptance/test_scan_faults\.py",
}


def group_of(test_id: str) -> str | None:
    """The group of a test; None for a test that may run anywhere."""
    name = next((name for name, ids in GROUPS.items() if re.match(ids, test_id)), None)
    # Every process has a server where all tests need one.
    return None if name == "postgresql" and IS_ON_POSTGRES else name


class GroupScheduling(LoadScopeScheduling):
    """Sends the tests of a group to one worker, and every other test to any; the groups first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid

    def _assign_work_unit(self, node: WorkerController) -> None:
        name = next((name for name in GROUPS if name in self.workqueue), None)
        if name is not None:
            self.workqueue.move_to_end(name, last=False)
        super()._assign_work_unit(node)
