"""Skills: folders with a SKILL.md, described in one line and read when they are needed.

They lie in `skills/` of the Hermes folder and in `.hermes/skills/` of the working folder,
one or two levels deep. Of two with one name that of the working folder counts.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.tools import files as text_files
from hermes_agent.tools.arguments import ToolError, answering, schema, takes, text
from hermes_agent.tools.base import Tool, answer
from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


log = logging.getLogger(__name__)

FILE: Final = "SKILL.md"
FOLDER: Final = "skills"
SKILL_NAME: Final = re.compile(r"[\w.-]{1,64}")
LISTED: Final = 40  # in the prompt; the rest is found with skill_view
DESCRIBED: Final = 60  # characters in the prompt
READ_BYTES: Final = 1_000_000


class Skill(NamedTuple):
    """One skill; one with a problem is shown in lists and offered to nobody."""

    name: str
    description: str
    folder: Path
    problem: str = ""


def found(home: Path, cwd: Path) -> list[Skill]:
    """Every skill by name, the broken ones with what is wrong with them."""
    skills: dict[str, Skill] = {}
    for place in (home / FOLDER, cwd / ".hermes" / FOLDER):
        for folder in _folders(place):
            skill = _read(folder)
            if skill.problem:
                log.warning("skill in %s ignored: %s", folder, skill.problem)
            if not skill.problem or skill.name not in skills:
                skills[skill.name] = skill
    return sorted(skills.values())


def usable(skills: list[Skill]) -> list[Skill]:
    """Those that can be read."""
    return [skill for skill in skills if not skill.problem]


def prompt_lines(skills: list[Skill]) -> str:
    """What the system prompt says about them: a line each, and never more than a few."""
    lines = [f"- {skill.name}: {_cut(skill.description)}" for skill in skills[:LISTED]]
    if len(skills) > LISTED:
        lines.append(f"({len(skills) - LISTED} more: call skill_view without a name)")
    return "\n".join(lines)


def body(text: str) -> tuple[str, str]:
    """The front matter of a SKILL.md and what follows it; no front matter is an empty one."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return "", text
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :]).lstrip("\n")
    return "", text


def _folders(place: Path) -> Iterator[Path]:
    for folder in _inside(place):
        if (folder / FILE).is_file():
            yield folder
        else:
            yield from (inner for inner in _inside(folder) if (inner / FILE).is_file())


def _inside(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        log.warning("skills in %s cannot be read: %s", folder, error)
        return []
    return [entry for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_"))]


def _read(folder: Path) -> Skill:
    path = folder / FILE
    try:
        if path.stat().st_size > READ_BYTES:
            return Skill(folder.name, "", folder, f"{FILE} is larger than {READ_BYTES:,} bytes")
        head, _rest = body(yaml_reader.read_text(path) or "")
        facts = yaml_reader.parse(head, path)
    except (ConfigError, OSError) as error:
        return Skill(folder.name, "", folder, str(error))
    name, description = facts.get("name") or folder.name, facts.get("description")
    if not isinstance(name, str) or not SKILL_NAME.fullmatch(name):
        problem = "its name may have at most 64 letters, digits, dots, _ and -"
        return Skill(folder.name, "", folder, problem)
    if not isinstance(description, str) or not description.strip():
        return Skill(name, "", folder, f"{FILE} must start with `---` and have a description")
    return Skill(name, " ".join(description.split()), folder)


def _cut(description: str) -> str:
    return description if len(description) <= DESCRIBED else f"{description[: DESCRIBED - 1]}…"


MAX_CHARACTERS: Final = 60_000
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
    known = {skill.name: skill for skill in usable(found(home, cwd))}
    name = text(arguments, "name", "").strip()
    if not name:
        return answer(skills={one.name: one.description for one in known.values()})
    skill = known.get(name)
    if skill is None:
        raise ToolError(f"Unknown skill {name!r}; available: {', '.join(known) or 'none'}.")
    wanted = text(arguments, "file", "").strip() or FILE
    content = _content(skill, wanted)
    if wanted != FILE:
        return answer(skill=name, file=wanted, content=content)
    files = list(_files(skill))
    return answer(
        skill=name,
        folder=str(skill.folder),
        content=body(content)[1],
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
    if len(found) <= MAX_CHARACTERS:
        return found
    return f"{found[:MAX_CHARACTERS]}\n[… cut; read the rest of {path} with read_file …]"


def _files(skill: Skill) -> Iterator[str]:
    for path in sorted(skill.folder.rglob("*")):
        if path.is_file() and path != skill.folder / FILE:
            yield str(path.relative_to(skill.folder))
