"""Skills: folders with a SKILL.md, listed in the prompt and read on demand.

They are in `skills/` of the Hermes folder and in `.hermes/skills/` of the working folder,
one or two levels deep. The working folder takes precedence; skills of plugins come last.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.tools import files as text_files
from hermes_agent.tools.arguments import ToolError, parameter, reporting_errors, schema, text
from hermes_agent.tools.base import Tool, success
from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject


log = logging.getLogger(__name__)

SKILL_FILE: Final = "SKILL.md"
FOLDER: Final = "skills"
SKILL_NAME: Final = re.compile(r"[\w.-]{1,64}")
MAX_PROMPT_SKILLS: Final = 40  # the others are listed by skill_view
DESCRIPTION_CHARACTERS: Final = 60  # in the prompt
MAX_SKILL_BYTES: Final = 1_000_000


class Skill(NamedTuple):
    """A skill; one with a problem is listed but not offered to the model."""

    name: str
    description: str
    folder: Path
    problem: str = ""


def find_skills(home: Path, cwd: Path, added: Iterable[Path] = ()) -> list[Skill]:
    """All skills by name, with those in *added* folders; invalid ones have a problem."""
    skills: dict[str, Skill] = {}
    roots = (home / FOLDER, cwd / ".hermes" / FOLDER)
    for folder in (*added, *(folder for root in roots for folder in _folders(root))):
        skill = _read(folder)
        if skill.problem:
            log.warning("skill in %s ignored: %s", folder, skill.problem)
        if not skill.problem or skill.name not in skills:
            skills[skill.name] = skill
    return sorted(skills.values())


def usable_skills(skills: list[Skill]) -> list[Skill]:
    """The skills without problems."""
    return [skill for skill in skills if not skill.problem]


def prompt_lines(skills: list[Skill]) -> str:
    """The lines of the system prompt, limited in number."""
    lines = [f"- {skill.name}: {_cut(skill.description)}" for skill in skills[:MAX_PROMPT_SKILLS]]
    if len(skills) > MAX_PROMPT_SKILLS:
        lines.append(f"({len(skills) - MAX_PROMPT_SKILLS} more: call skill_view without a name)")
    return "\n".join(lines)


def split_front_matter(text: str) -> tuple[str, str]:
    """The front matter of a SKILL.md, possibly empty, and the rest."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return "", text
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :]).lstrip("\n")
    return "", text


def _folders(root: Path) -> Iterator[Path]:
    for folder in _inside(root):
        if (folder / SKILL_FILE).is_file():
            yield folder
        else:
            yield from (inner for inner in _inside(folder) if (inner / SKILL_FILE).is_file())


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
    path = folder / SKILL_FILE
    try:
        if path.stat().st_size > MAX_SKILL_BYTES:
            return Skill(
                folder.name, "", folder, f"{SKILL_FILE} is larger than {MAX_SKILL_BYTES:,} bytes"
            )
        head, _rest = split_front_matter(yaml_reader.read_text(path) or "")
        metadata = yaml_reader.parse(head, path)
    except (ConfigError, OSError) as error:
        return Skill(folder.name, "", folder, str(error))
    name, description = metadata.get("name") or folder.name, metadata.get("description")
    if not isinstance(name, str) or not SKILL_NAME.fullmatch(name):
        problem = "its name may have at most 64 letters, digits, dots, _ and -"
        return Skill(folder.name, "", folder, problem)
    if not isinstance(description, str) or not description.strip():
        return Skill(name, "", folder, f"{SKILL_FILE} must start with `---` and have a description")
    return Skill(name, " ".join(description.split()), folder)


def _cut(description: str) -> str:
    return (
        description
        if len(description) <= DESCRIPTION_CHARACTERS
        else f"{description[: DESCRIPTION_CHARACTERS - 1]}…"
    )


MAX_CHARACTERS: Final = 60_000
MAX_LISTED_FILES: Final = 100


def skill_tool(home: Path, cwd: Path, added: tuple[Path, ...] = ()) -> Tool:
    """The tool; it reads the folders at each call."""
    return Tool(
        "skill_view",
        "Read a skill's instructions, or a file of it. Without a name: list all skills.",
        schema("", name=parameter("string"), file=parameter("string")),
        reporting_errors(lambda arguments, _context: _view(arguments, home, cwd, added)),
    )


def _view(arguments: JsonObject, home: Path, cwd: Path, added: tuple[Path, ...]) -> str:
    skills = {skill.name: skill for skill in usable_skills(find_skills(home, cwd, added))}
    name = text(arguments, "name", "").strip()
    if not name:
        return success(skills={skill.name: skill.description for skill in skills.values()})
    skill = skills.get(name)
    if skill is None:
        raise ToolError(f"Unknown skill {name!r}; available: {', '.join(skills) or 'none'}.")
    file_name = text(arguments, "file", "").strip() or SKILL_FILE
    content = _content(skill, file_name)
    if file_name != SKILL_FILE:
        return success(skill=name, file=file_name, content=content)
    files = list(_files(skill))
    return success(
        skill=name,
        folder=str(skill.folder),
        content=split_front_matter(content)[1],
        files=files[:MAX_LISTED_FILES],
        **({"not_listed": len(files) - MAX_LISTED_FILES} if len(files) > MAX_LISTED_FILES else {}),
    )


def _content(skill: Skill, file_name: str) -> str:
    """The text of a file inside the skill's folder; symlinks are resolved first."""
    if "\0" in file_name:
        raise ToolError("`file` is not a path.")
    folder = skill.folder.resolve()
    path = (folder / file_name).resolve()
    if not path.is_relative_to(folder):
        raise ToolError(f"{file_name!r} is not inside the skill's folder.")
    content = text_files.displayable_text(text_files.load(path).text)
    if len(content) <= MAX_CHARACTERS:
        return content
    return f"{content[:MAX_CHARACTERS]}\n[… cut; read the rest of {path} with read_file …]"


def _files(skill: Skill) -> Iterator[str]:
    for path in sorted(skill.folder.rglob("*")):
        if path.is_file() and path != skill.folder / SKILL_FILE:
            yield str(path.relative_to(skill.folder))
