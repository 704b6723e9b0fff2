"""Every method of the store and of its repositories is in the reference, and nothing else is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from hermes_state import SessionDB
from hermes_state.repository import Repository
from hermes_state.sessions.records import COLUMNS
from hermes_state.sessions.rows import SessionFacts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "session-db.md"
Methods = "dict[str, Callable[..., Any]]"


def public_methods(owner: object) -> Methods:
    return {name: method for name, method in inspect.getmembers(owner, callable) if name[0] != "_"}


@pytest.fixture
def methods(tmp_path: Path) -> Methods:
    """Methods by documented name; those of the store itself are not repeated."""
    with SessionDB(tmp_path / "state.db") as db:
        repositories = {n: v for n, v in inspect.getmembers(db) if isinstance(v, Repository)}
        found = {n: m for n, m in public_methods(db).items() if n not in repositories}
        for attribute, repository in repositories.items():
            own = public_methods(repository)
            found |= {f"{attribute}.{n}": m for n, m in own.items() if n not in found}
    return found


def test_every_method_is_documented_and_every_documented_one_exists(methods: Methods) -> None:
    documented = set(re.findall(r"^\| `([\w.]+)\(", PAGE.read_text(), flags=re.MULTILINE))
    assert documented == set(methods)


def test_every_parameter_is_documented(methods: Methods) -> None:
    rows = re.findall(r"^\| `([\w.]+)\((.*?)\)`(?: →| \|)", PAGE.read_text(), flags=re.MULTILINE)
    assert len(rows) == len(methods)
    for name, text in rows:
        documented = re.findall(r"(?:^|, )\**(\w+)(?==|,|$)", re.sub(r"\([^)]*\)", "", text))
        assert documented == list(inspect.signature(methods[name]).parameters), name


def test_every_method_says_what_it_does(methods: Methods) -> None:
    for name, method in methods.items():
        assert inspect.getdoc(method), name


def test_every_column_of_a_session_is_documented() -> None:
    sentence = re.search(
        r"`SessionRow` has the columns (.*?), and `others`", PAGE.read_text(), re.DOTALL
    )
    assert sentence is not None
    assert tuple(re.split(r",\s+", sentence[1])) == COLUMNS


def test_facts_of_a_new_session_are_columns() -> None:
    assert set(SessionFacts.__annotations__) <= set(COLUMNS)
