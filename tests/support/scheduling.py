"""Which tests run in the same worker: those that share an expensive server or data.

pytest-xdist 3.8 reads its `xdist_group` marks into an attribute that pytest 9.2 ignores, so
`--dist loadgroup` distributes marked tests over all workers (pytest-xdist issue 1386).
"""

from __future__ import annotations

import re
from typing import Final

from xdist.scheduler import LoadScopeScheduling

from support.postgres import IS_ON_POSTGRES

# The first pattern that a test's id matches names its group. Groups with the most tests start
# first. The two groups of browser tests need about the same CPU time; those of the demo are in
# the first, because a process that runs one of them makes it.
GROUPS: Final = {
    "synapse": r"tests/gateway/test_(matrix(_\w+)?\.py|deletions\.py::.*matrix)"
    r"|.*test_platform_kills\.py::.*matrix\]",
    "mail": r"tests/gateway/test_email\.py|.*test_platform_kills\.py::.*email\]",
    # Its library takes seconds to import, in each process that runs one of these tests.
    "telegram": r"tests/gateway/test_(telegram|live_reply)",
    "postgresql": r"tests/state/(.*\[postgresql|test_(store_copy|postgres))|tests/cli/test_store\b"
    r"|tests/a[a-z]*/test_shared_(ledger|scan)",
    "API clients": r"tests/acceptance/test_api_clients\.py",
    # Its library takes half a second to import.
    "OpenAPI": r"tests/dashboard/test_openapi\.py",
    "launcher": r"tests/cli/test_launcher\.py",
    "benchmarks": r"tests/benchmarks/test_run\.py",
    "scan faults": r"tests/acceptance/test_scan_faults\.py",
    "local model": r"tests/agent/test_local_model\.py",
    "browser 1": r"tests/browser/test_(every_page|keyboard|analytics|many_sessions"
    r"|achievements_page\.py::test_(badges|the_evidence|a_card|a_year)"
    r"|sessions\.py::test_(matches|filters|a_day))",
    "browser 2": r"tests/browser/",
}


def group_of(test_id: str) -> str | None:
    """The group of a test; None for a test that may run anywhere."""
    name = next((name for name, ids in GROUPS.items() if re.match(ids, test_id)), None)
    # Every process has a server where all tests need one.
    return None if name == "postgresql" and IS_ON_POSTGRES else name


class GroupScheduling(LoadScopeScheduling):
    """Sends the tests of a group to one worker, and every other test to any."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid
