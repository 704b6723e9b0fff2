"""Write the tables of docs/reference/hooks.md from the code.

.venv/bin/python tools/hooks_reference.py
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_core.hooks import HOOKS, BoundaryKind

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "hooks.md"
KIND_COLUMNS = (
    "kind",
    "when",
    "one event for each of",
    "`on_session_finalize`",
    "`on_session_reset`",
)


def hook_table() -> str:
    """All hooks, with their arguments."""
    rows = [
        (
            f"`{hook.name}`",
            hook.moment,
            ", ".join(f"`{fact}`" for fact in sorted(hook.facts)),
            hook.returns,
        )
        for hook in HOOKS
    ]
    return _table(("hook", "called when", "facts", "answer"), rows)


def kind_table() -> str:
    """All kinds of boundary, with what each announces."""
    rows = [
        (f"`{kind}`", kind.trigger, kind.events, kind.finalized, kind.reset)
        for kind in BoundaryKind
    ]
    return _table(KIND_COLUMNS, rows)


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_tables(text: str) -> str:
    """The page with its two tables as the code has them."""
    for heading, table in (("hook | called when", hook_table()), ("kind | when", kind_table())):
        pattern = rf"^\| {re.escape(heading)}.*\n(?:\|.*\n)+"
        text, count = re.subn(pattern, lambda _, table=table: table, text, flags=re.MULTILINE)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} tables that start with {heading!r}")
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
