"""Accesses by string key: almost all of them are checked by the type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "string_keys.py"
MAX_UNCHECKED = 80

SAMPLE = """\
import json
from typing import Any, TypedDict, TypeVar

class Row(TypedDict):
    id: int

class LongRow(Row):
    name: str

AnyRow = TypeVar("AnyRow", bound=Row)

def checked(row: Row, other: Row | LongRow, rows: list[AnyRow]) -> None:
    print(row["id"], f"{other['id']}", rows[0]["id"])
    row["id"] = 2

def unchecked(row: dict[str, Any], text: str, either: Row | dict[str, int]) -> None:
    print(row["loose"], json.loads(text)["parsed"], either["either"])
    print(f"{row['formatted']}")
    row["set"] = 2
    del row["deleted"]
"""


def run(*arguments: object) -> str:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    ).stdout


def test_keys_of_typed_dicts_count_as_checked_and_all_others_do_not(tmp_path: Path) -> None:
    package = tmp_path / "sample"
    package.mkdir()
    (package / "__init__.py").write_text(SAMPLE)
    *listed, numbers = run(tmp_path).splitlines()
    keys = [re.search(r": '(\w+)' of", line) for line in listed]
    assert [key and key[1] for key in keys] == ["loose", "parsed", "either", "formatted"]
    assert numbers == "7 accesses by string key, 4 of them unchecked"


def test_few_accesses_by_string_key_are_unchecked() -> None:
    """A misspelt key is an error of the type checker, not of the running program."""
    *listed, numbers = run().splitlines()
    found = re.fullmatch(r"(\d+) accesses by string key, (\d+) of them unchecked", numbers)
    assert found is not None, numbers
    total, unchecked = map(int, found.groups())
    assert total > unchecked == len(listed)
    assert unchecked < MAX_UNCHECKED, "\n".join(listed)
