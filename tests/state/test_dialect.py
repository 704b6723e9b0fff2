"""What means something else on PostgreSQL is written with the members of `Dialect`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hermes_state
from hermes_state.engine.dialect import DIALECT
from hermes_state.engine.postgres.dialect import POSTGRES, statement

SOURCE = Path(hermes_state.__file__).parent
ENGINES = SOURCE / "engine"
# In statements that only one database runs, or that read no position.
ALLOWED = {
    "salvage/recovery.py", "portable/store_copy.py", "schema/own.py", "search/postgres.py",
    "search/word_index.py",
}  # fmt: skip
ONLY_BY_NAME = re.compile(
    r"(FROM|JOIN|UPDATE) +hermes_change\b|max\(sequence\)|SKIP LOCKED|skip locked|\bI?LIKE\b"
    r"|CROSS JOIN|NOT INDEXED|[ (]\+[a-z_.]+ (=|<|>|IN)|pg_snapshot",
)


def statements(path: Path) -> list[str]:
    """Lines of texts, without those of comments and of documentation."""
    without_docs = re.sub(r'^ *""".*?"""$', "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [line for line in without_docs.splitlines() if not line.lstrip().startswith("#")]


def test_no_statement_names_them_otherwise() -> None:
    files = [path for path in SOURCE.rglob("*.py") if not path.is_relative_to(ENGINES)]
    assert len(files) > 80
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in files
        if path.relative_to(SOURCE).as_posix() not in ALLOWED
        for line in statements(path)
        if ONLY_BY_NAME.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("member", DIALECT._fields)
def test_postgresql_gets_its_own_text(member: str) -> None:
    own, other = getattr(DIALECT, member), getattr(POSTGRES, member)
    text = statement(f"SELECT 1 FROM a {own} b")
    assert text == f"SELECT 1 FROM a {other} b"
    assert [name for name in DIALECT._fields if getattr(DIALECT, name) in own] == [member]
