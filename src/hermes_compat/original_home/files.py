"""Memories and skills: copied, never over a file that differs."""

from __future__ import annotations

import hashlib
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.memory.facts import AgentMemory
from hermes_compat.original_home.home import ItemState, MoveItem
from hermes_core import human_format, paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_compat.original_home.home import MoveContext

MEMORY: Final = "memory"
MEMORY_FILES: Final = ("memories/MEMORY.md", "memories/USER.md")
SKILLS: Final = "skills"
SKILL_FILE: Final = "SKILL.md"
IGNORED_NAMES: Final = frozenset({".git", "__pycache__", ".DS_Store", "node_modules", ".venv"})
MAX_SKILL_FILES: Final = 2000
IN_PLACE: Final = "used where it is"


class CopyPlan(NamedTuple):
    """The files of a folder or a single file: what is missing here, and what differs."""

    missing: list[str]
    different: list[str]


def plan_memories(context: MoveContext) -> Iterator[MoveItem]:
    """The notes of the agent."""
    for name in MEMORY_FILES:
        path = context.home.path / name
        if path.is_file():
            yield _item(context, MEMORY, name, [name])


def plan_skills(context: MoveContext) -> Iterator[MoveItem]:
    """Each folder with a skill."""
    root = context.home.path / SKILLS
    found = sorted(root.rglob(SKILL_FILE)) if root.is_dir() else []
    if context.home.is_in_place and found:
        what = human_format.plural(len(found), "skill")
        yield MoveItem("skill", what, ItemState.HERE, IN_PLACE)
        return
    for path in found:
        folder = path.parent
        names = [str(file.relative_to(context.home.path)) for file in _files(folder)]
        name = str(folder.relative_to(context.home.path))
        if len(names) > MAX_SKILL_FILES:
            reason = f"more than {MAX_SKILL_FILES} files; copy the folder yourself"
            yield MoveItem("skill", name, ItemState.SKIP, reason)
        else:
            yield _item(context, "skill", name, names)


def _files(folder: Path) -> Iterator[Path]:
    """The files of a skill, without those of other programs and without links."""
    for path in sorted(folder.iterdir()):
        if path.name in IGNORED_NAMES or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _item(context: MoveContext, kind: str, name: str, names: list[str]) -> MoveItem:
    if context.home.is_in_place:
        return MoveItem(kind, name, ItemState.HERE, IN_PLACE)
    plan = _compare(context, names)
    conflicts = f"differs here: {', '.join(plan.different)}; compare and merge by hand"
    if plan.missing:
        what = human_format.plural(len(plan.missing), "file")
        detail = f"copy {what}" + (f"; {conflicts}" if plan.different else "")

        def copy() -> None:
            for missing in plan.missing:
                _copy(context.home.path / missing, paths.hermes_home() / missing)
            if kind == MEMORY:
                AgentMemory(context.db).take_over("import")

        digest = _digest([context.home.path / each for each in names])
        item = MoveItem(kind, name, ItemState.TAKE, detail, copy, f"{kind}:{name}:{digest}")
        return context.once(item)
    if plan.different:
        return MoveItem(kind, name, ItemState.SKIP, conflicts)
    return MoveItem(kind, name, ItemState.HERE, "the same here")


def _compare(context: MoveContext, names: list[str]) -> CopyPlan:
    plan = CopyPlan([], [])
    for name in names:
        here = paths.hermes_home() / name
        if not here.exists():
            plan.missing.append(name)
        elif here.read_bytes() != (context.home.path / name).read_bytes():
            plan.different.append(name)
    return plan


def _copy(source: Path, target: Path) -> None:
    write_atomically(target, source.read_bytes())
    if source.stat().st_mode & stat.S_IXUSR:
        target.chmod(paths.FOLDER_MODE)  # a script of a skill


def _digest(files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        digest.update(file.name.encode("utf-8", "surrogatepass") + b"\0" + file.read_bytes())
    return digest.hexdigest()
