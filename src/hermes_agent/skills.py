"""Skills: folders with a SKILL.md, described in one line and read when they are needed.

They lie in `skills/` of the Hermes folder and in `.hermes/skills/` of the working folder,
one or two levels deep. Of two with one name that of the working folder counts.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

FILE: Final = "SKILL.md"
FOLDER: Final = "skills"
NAME: Final = re.compile(r"[\w.-]{1,64}")
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
                log.warning("the skill in %s is left out: %s", folder, skill.problem)
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
    return [one for one in entries if one.is_dir() and not one.name.startswith((".", "_"))]


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
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problem = "its name may have at most 64 letters, digits, points, _ and -"
        return Skill(folder.name, "", folder, problem)
    if not isinstance(description, str) or not description.strip():
        return Skill(name, "", folder, f"{FILE} must begin with `---` and have a description")
    return Skill(name, " ".join(description.split()), folder)


def _cut(description: str) -> str:
    return description if len(description) <= DESCRIBED else f"{description[: DESCRIBED - 1]}…"
