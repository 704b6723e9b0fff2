"""Every method of the store is in the reference, and nothing else is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from hermes_state import SessionDB

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "session-db.md"


def public_methods() -> set[str]:
    return {name for name, _ in inspect.getmembers(SessionDB, callable) if name[0] != "_"}


def test_every_method_is_documented_and_every_documented_one_exists() -> None:
    documented = set(re.findall(r"^\| `(\w+)\(", PAGE.read_text(), flags=re.MULTILINE))
    assert documented == public_methods()


def test_every_parameter_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)\((.*?)\)`(?: →| \|)", PAGE.read_text(), flags=re.MULTILINE)
    assert len(rows) == len(public_methods())
    for name, text in rows:
        documented = re.findall(r"(?:^|, )\**(\w+)(?==|,|$)", re.sub(r"\([^)]*\)", "", text))
        parameters = list(inspect.signature(getattr(SessionDB, name)).parameters)
        assert documented == [each for each in parameters if each != "self"], name


def test_every_method_says_what_it_does() -> None:
    for name in public_methods():
        assert inspect.getdoc(getattr(SessionDB, name)), name
