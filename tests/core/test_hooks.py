"""The table of hooks has the documented arguments and matches the documentation."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from hermes_core.errors import UsageError
from hermes_core.hooks import HOOKS, BoundaryKind, spec

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "reference" / "hooks.md"
BOUNDARY_IDS = "event_id session_id old_session_id new_session_id"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("on_session_start", "session_id model platform"),
        ("on_session_end", "session_id completed interrupted model platform"),
        ("on_session_finalize", "session_id platform"),
        ("on_session_reset", "session_id platform"),
        ("on_session_boundary", f"{BOUNDARY_IDS} epoch kind occurred_at platform reason"),
    ],
)
def test_session_hooks_have_exactly_the_documented_arguments(name, facts):
    assert spec(name).facts == frozenset(facts.split())


def test_names_are_unique():
    assert len({hook.name for hook in HOOKS}) == len(HOOKS)


def test_there_are_twelve_kinds_of_boundary_and_each_is_a_text():
    assert [str(kind) for kind in BoundaryKind] == [
        "new", "idle", "daily", "suspend", "resume", "branch",
        "handoff", "compaction", "expiry", "prune", "shutdown", "crash",
    ]  # fmt: skip
    assert BoundaryKind("crash") is BoundaryKind.CRASH
    assert BoundaryKind.CRASH == "crash"


def test_an_unknown_hook_is_refused_with_a_list_of_hooks():
    with pytest.raises(UsageError, match="on_session_end"):
        spec("on_sesion_end")


def test_the_tables_of_the_documentation_are_those_of_the_code():
    tool = runpy.run_path(str(ROOT / "tools" / "hooks_reference.py"))
    text = DOCS.read_text()
    assert tool["with_tables"](text) == text, "run tools/hooks_reference.py"
