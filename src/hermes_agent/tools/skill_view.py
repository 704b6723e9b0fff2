"""`skill_view`: read a skill, or another file in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_agent import skills
from hermes_agent.tools import text_files
from hermes_agent.tools.arguments import ToolError, answering, schema, takes, text
from hermes_agent.tools.base import Tool, answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_agent.skills import Skill

MOST_CHARACTERS: Final = 60_000
LISTED_FILES: Final = 100


def skill_tool(home: Path, cwd: Path) -> Tool:
    """The tool; it looks at the folders anew at each call."""
    return Tool(
        "skill_view",
        "Read a skill's instructions, or a file of it. Without a name: list all skills.",
        schema("", name=takes("string"), file=takes("string")),
        answering(lambda arguments, _context: _view(arguments, home, cwd)),
    )


def _view(arguments: dict[str, Any], home: Path, cwd: Path) -> str:
    known = {skill.name: skill for skill in skills.usable(skills.found(home, cwd))}
    name = text(arguments, "name", "").strip()
    if not name:
        return answer(skills={one.name: one.description for one in known.values()})
    skill = known.get(name)
    if skill is None:
        raise ToolError(f"There is no skill {name!r}; there are: {', '.join(known) or 'none'}.")
    wanted = text(arguments, "file", "").strip() or skills.FILE
    content = _content(skill, wanted)
    if wanted != skills.FILE:
        return answer(skill=name, file=wanted, content=content)
    files = list(_files(skill))
    return answer(
        skill=name,
        folder=str(skill.folder),
        content=skills.body(content)[1],
        files=files[:LISTED_FILES],
        **({"not_listed": len(files) - LISTED_FILES} if len(files) > LISTED_FILES else {}),
    )


def _content(skill: Skill, wanted: str) -> str:
    """The text of a file that really lies in the skill's folder, wherever links lead."""
    if "\0" in wanted:
        raise ToolError("`file` is not a path.")
    folder = skill.folder.resolve()
    path = (folder / wanted).resolve()
    if not path.is_relative_to(folder):
        raise ToolError(f"{wanted!r} is not inside the skill's folder.")
    found = text_files.presentable(text_files.load(path).text)
    if len(found) <= MOST_CHARACTERS:
        return found
    return f"{found[:MOST_CHARACTERS]}\n[… cut; read the rest of {path} with read_file …]"


def _files(skill: Skill) -> Iterator[str]:
    for path in sorted(skill.folder.rglob("*")):
        if path.is_file() and path != skill.folder / skills.FILE:
            yield str(path.relative_to(skill.folder))
