"""Skills: folders with a SKILL.md, listed in the prompt and read on demand.

They are in `skills/` in the Hermes folder, one or two levels deep, and in the trusted files of
a project, which take precedence; skills of plugins come last.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.project.files import FileKind, read_digest
from hermes_agent.tools import files as text_files
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    parameter,
    reporting_errors,
    schema,
    success,
    text,
)
from hermes_agent.tools.text_encoding import displayable_text
from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from hermes_agent.project.files import ProjectFile
    from hermes_core.json_values import JsonObject


log = logging.getLogger(__name__)

SKILL_FILE: Final = "SKILL.md"
FOLDER: Final = "skills"
MORE_SKILLS: Final = "({} more: call skill_view without a name)"
SKILL_NAME: Final = re.compile(r"[\w.-]{1,64}")
PLAIN_DESCRIPTION: Final = re.compile(r"^description:[ \t]+([^\s'\"|>].*?)\s*$", re.MULTILINE)
DESCRIPTION_CHARACTERS: Final = 1_024  # the limit of the format
MIN_DESCRIPTION_CHARACTERS: Final = 20  # in the prompt
MAX_SKILL_BYTES: Final = 1_000_000


class Skill(NamedTuple):
    """A skill; one with a problem is listed but not offered to the model."""

    name: str
    description: str
    folder: Path
    problem: str = ""
    # The trusted files of a skill of a project by path, instead of what is in the folder.
    trusted: Mapping[Path, ProjectFile] | None = None


def find_skills(
    home: Path, project: Iterable[ProjectFile] = (), added: Iterable[Path] = ()
) -> list[Skill]:
    """All skills by name, with those in *added* folders; invalid ones have a problem."""
    skills: dict[str, Skill] = {}
    own = (_read(folder) for folder in (*added, *_folders(home / FOLDER)))
    for skill in (*own, *_project_skills(project)):
        if skill.problem:
            log.warning("skill in %s ignored: %s", skill.folder, skill.problem)
        if not skill.problem or skill.name not in skills:
            skills[skill.name] = skill
    return sorted(skills.values(), key=lambda skill: skill.name)


def usable_skills(skills: list[Skill]) -> list[Skill]:
    """The skills without problems."""
    return [skill for skill in skills if not skill.problem]


def prompt_lines(skills: list[Skill], characters: int) -> str:
    """The lines of the system prompt, at most *characters* of them.

    The longest descriptions are shortened to the same length before a skill is left out.
    """
    listed = len(skills)
    while listed and (limit := _description_limit(skills, listed, characters)) is None:
        listed -= 1
    lines = [f"- {skill.name}: {_cut(skill.description, limit or 0)}" for skill in skills[:listed]]
    if listed < len(skills):
        lines.append(MORE_SKILLS.format(len(skills) - listed))
    return "\n".join(lines)


def _description_limit(skills: list[Skill], listed: int, characters: int) -> int | None:
    """The longest description of the first *listed* skills; None if they do not fit."""
    reserved = len(MORE_SKILLS) + 3 if listed < len(skills) else 0
    heads = sum(len(f"- {skill.name}: \n") for skill in skills[:listed])
    lengths = sorted(
        min(len(skill.description), DESCRIPTION_CHARACTERS) for skill in skills[:listed]
    )
    limit = _fitting_length(lengths, characters - reserved - heads)
    return limit if limit >= MIN_DESCRIPTION_CHARACTERS else None


def _fitting_length(lengths: list[int], characters: int) -> int:
    """The length to which the longest of sorted texts are cut, so that all of them fit."""
    remaining = characters
    for number, length in enumerate(lengths):
        share = remaining // (len(lengths) - number)
        if length > share:
            return share
        remaining -= length
    return DESCRIPTION_CHARACTERS


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


def _project_skills(files: Iterable[ProjectFile]) -> Iterator[Skill]:
    """The skills among the trusted files of a project."""
    found = [file for file in files if file.kind in {FileKind.SKILL, FileKind.SKILL_DATA}]
    for main in (file for file in found if file.kind is FileKind.SKILL):
        own = {file.path: file for file in found if file.folder == main.folder}
        yield _parse(main.folder, main.text)._replace(trusted=own)


def _read(folder: Path) -> Skill:
    path = folder / SKILL_FILE
    try:
        if path.stat().st_size > MAX_SKILL_BYTES:
            return Skill(
                folder.name, "", folder, f"{SKILL_FILE} is larger than {MAX_SKILL_BYTES:,} bytes"
            )
        content = yaml_reader.read_text(path) or ""
    except (ConfigError, OSError) as error:
        return Skill(folder.name, "", folder, str(error))
    return _parse(folder, content)


def _parse(folder: Path, content: str) -> Skill:
    try:
        metadata = _metadata(split_front_matter(content)[0], folder / SKILL_FILE)
    except ConfigError as error:
        return Skill(folder.name, "", folder, str(error))
    name, description = metadata.get("name") or folder.name, metadata.get("description")
    if not isinstance(name, str) or not SKILL_NAME.fullmatch(name):
        problem = "its name may have at most 64 letters, digits, dots, _ and -"
        return Skill(folder.name, "", folder, problem)
    if not isinstance(description, str) or not description.strip():
        return Skill(name, "", folder, f"{SKILL_FILE} must start with `---` and have a description")
    return Skill(name, " ".join(description.split()), folder)


def _metadata(head: str, path: Path) -> dict[str, object]:
    """The front matter; a description with a colon is common, and not valid YAML."""
    try:
        return yaml_reader.parse(head, path)
    except ConfigError:
        quoted = PLAIN_DESCRIPTION.sub(lambda found: f"description: {json.dumps(found[1])}", head)
        if quoted == head:
            raise
        return yaml_reader.parse(quoted, path)


def _cut(description: str, characters: int) -> str:
    if len(description) <= characters:
        return description
    return f"{description[: characters - 1]}…"


MAX_CHARACTERS: Final = 60_000
MAX_LISTED_FILES: Final = 100


def skill_tool(find: Callable[[], list[Skill]]) -> Tool:
    """The tool; *find* reads the folders at each call."""
    return Tool(
        "skill_view",
        "Read a skill's instructions, or a file of it. Without a name: list all skills.",
        schema("", name=parameter("string"), file=parameter("string")),
        reporting_errors(lambda arguments, _context: _view(arguments, find())),
        always_reads,
    )


def _view(arguments: JsonObject, found: list[Skill]) -> str:
    skills = {skill.name: skill for skill in usable_skills(found)}
    name = text(arguments, "name", "").strip()
    if not name:
        return success(skills={skill.name: skill.description for skill in skills.values()})
    skill = skills.get(name)
    if skill is None:
        raise ToolError(f"Unknown skill {name!r}; available: {', '.join(skills) or 'none'}.")
    file_name = text(arguments, "file", "").strip() or SKILL_FILE
    content = skill_text(skill, file_name)
    if file_name != SKILL_FILE:
        return success(skill=name, file=file_name, content=content)
    files = list(skill_files(skill))
    return success(
        skill=name,
        folder=str(skill.folder),
        content=split_front_matter(content)[1],
        files=files[:MAX_LISTED_FILES],
        **({"not_listed": len(files) - MAX_LISTED_FILES} if len(files) > MAX_LISTED_FILES else {}),
    )


def skill_text(skill: Skill, file_name: str = SKILL_FILE) -> str:
    """The text of a file inside the skill's folder; symlinks are resolved first."""
    if "\0" in file_name:
        raise ToolError("`file` is not a path.")
    folder = skill.folder.resolve()
    path = (folder / file_name).resolve()
    if not path.is_relative_to(folder):
        raise ToolError(f"{file_name!r} is not inside the skill's folder.")
    content = displayable_text(
        text_files.load(path).text if skill.trusted is None else _trusted_text(skill.trusted, path)
    )
    if len(content) <= MAX_CHARACTERS:
        return content
    return f"{content[:MAX_CHARACTERS]}\n[… cut; read the rest of {path} with read_file …]"


def _trusted_text(trusted: Mapping[Path, ProjectFile], path: Path) -> str:
    """The text of a file that the user trusts as it is now."""
    file = trusted.get(path)
    if file is None:
        raise ToolError(f"{path} is not a trusted file; the user can run `hermes trust`.")
    if file.data:
        return file.text
    data, digest = read_digest(path)
    if digest != file.digest:
        raise ToolError(f"{path} has changed; the user can run `hermes trust`.")
    return data.decode("utf-8-sig", errors="replace")


def skill_files(skill: Skill) -> Iterator[str]:
    """The files of a skill besides its SKILL.md."""
    for path in sorted(skill.folder.rglob("*")):
        if path.is_file() and path != skill.folder / SKILL_FILE:
            yield str(path.relative_to(skill.folder))
