"""List accesses by string key that the type checker does not check.

    python tools/string_keys.py            accesses in src
    python tools/string_keys.py FOLDER     accesses in the packages of another folder

mypy compares the key of `row["id"]` with the declaration if `row` is a TypedDict. Everywhere else
a misspelt key is found only when the line runs. Needs mypy, as installed by `make setup`.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mypy.build import build
from mypy.main import process_options
from mypy.nodes import IndexExpr, StrExpr
from mypy.server.subexpr import get_subexpressions
from mypy.types import TypedDictType, TypeVarType, UnionType, get_proper_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy.build import BuildResult
    from mypy.nodes import MypyFile
    from mypy.types import Type

ROOT = Path(__file__).resolve().parent.parent


class KeyAccess(NamedTuple):
    """An access by string key."""

    path: Path
    line: int
    key: str
    type: str  # of the object
    is_checked: bool


def accesses(folder: Path) -> list[KeyAccess]:
    """The accesses in the packages of *folder*, in the order of the files."""
    files = {
        path: changed for path in sorted(folder.rglob("*.py")) if (changed := _changes(path))[0]
    }
    result = _check_types(folder, list(files))
    modules = {Path(module.path).resolve(): module for module in result.files.values()}
    return [
        access
        for path, (_, changes) in files.items()
        for access in _accesses_of(modules[path.resolve()], path, changes, result)
    ]


def _changes(path: Path) -> tuple[bool, set[tuple[int, int]]]:
    """Whether a file has string keys, and the positions where a key is set or deleted."""
    keys = [
        node
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ]
    changes = [node for node in keys if not isinstance(node.ctx, ast.Load)]
    return bool(keys), {(node.lineno, node.col_offset) for node in changes}


def _check_types(folder: Path, files: list[Path]) -> BuildResult:
    """Check the types of the files.

    Installed packages are not read: that takes most of the time, and objects of theirs are
    not our TypedDicts. What they are used for then has the type Any, which is not checked.
    """
    settings = ["--config-file=", "--no-site-packages", "--cache-dir=/dev/null"]
    os.environ["MYPYPATH"] = str(folder)
    names = [str(path) for path in files]
    sources, options = process_options(
        [*settings, "--strict", "--follow-imports=silent", "--explicit-package-bases", *names]
    )
    options.export_types = True
    options.preserve_asts = True
    options.incremental = False
    return build(sources, options)


def _accesses_of(
    module: MypyFile, path: Path, changes: set[tuple[int, int]], result: BuildResult
) -> Iterator[KeyAccess]:
    for found in get_subexpressions(module):
        if not isinstance(found, IndexExpr) or not isinstance(found.index, StrExpr):
            continue
        if found.analyzed is None and (found.line, found.column) not in changes:
            of = result.types.get(found.base)
            is_checked = of is not None and _is_typed_dict(of)
            yield KeyAccess(path, found.line, found.index.value, str(of), is_checked)


def _is_typed_dict(found: Type) -> bool:
    proper = get_proper_type(found)
    if isinstance(proper, UnionType):
        return all(map(_is_typed_dict, proper.items))
    if isinstance(proper, TypeVarType):
        return _is_typed_dict(proper.upper_bound)
    return isinstance(proper, TypedDictType)


def main(arguments: list[str]) -> None:
    """Print the unchecked accesses and the numbers of both."""
    folder = Path(arguments[0]) if arguments else ROOT / "src"
    gc.disable()  # the syntax trees are needed to the end
    found = accesses(folder)
    unchecked = [access for access in found if not access.is_checked]
    lines = [
        *(f"{one.path}:{one.line}: {one.key!r} of {one.type[:60]}" for one in unchecked),
        f"{len(found)} accesses by string key, {len(unchecked)} of them unchecked\n",
    ]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()
    os._exit(0)  # releasing the trees would take as long as checking them


if __name__ == "__main__":
    main(sys.argv[1:])
