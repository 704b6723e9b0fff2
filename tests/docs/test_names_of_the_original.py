"""Our own code uses no name that exists only for plugins and tests of hermes-agent."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_compat.session_db import OriginalSessionDB
from hermes_compat.session_store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parents[2] / "src"
HANDED_OVER = {"gateway.run", "gateway.session", "hermes_cli.plugins", "tui_gateway.server"}
STORES = {"db", "_db", "store", "_store", "routes", "_routes"}
ORIGINAL = {name for kind in (OriginalSessionDB, SessionStore) for name in vars(kind)}


# Reads any store that has hermes-agent's methods, as the achievements plugin gives it.
FOREIGN_STORES = "hermes_achievements/scan/plain_history.py"


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in SOURCE.rglob("*.py"):
        if "hermes_compat" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                yield f"{path.relative_to(SOURCE)}", node


def receiver(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_handed_over(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(item.name in HANDED_OVER for item in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    names = {f"{node.module}.{item.name}" for item in node.names} | {node.module}
    return bool(names & HANDED_OVER) or "hermes_state.SessionDB" in names


def test_our_code_uses_no_original_name() -> None:
    found: list[str] = []
    for path, node in nodes():
        is_name = isinstance(node, ast.Attribute) and node.attr in ORIGINAL
        if is_name and receiver(node.value) in STORES and path != FOREIGN_STORES:
            found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
        if is_handed_over(node):
            found.append(f"{path}: {ast.unparse(node)}")
    assert found == []
