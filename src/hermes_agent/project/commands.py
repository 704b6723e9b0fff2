"""Custom slash commands: Markdown files whose text is sent as a prompt.

`commands/` in the Hermes folder is for all conversations; those of a project need trust. A
subfolder is a namespace: `commands/git/review.md` is `/git:review`. Only `description` and
`argument-hint` of the front matter are used: a file never changes what the agent may do.
"""

from __future__ import annotations

import logging
import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.project.files import COMMAND_FOLDERS, MAX_TEXT_BYTES, FileKind
from hermes_agent.skills import split_front_matter
from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_agent.project.files import ProjectFile

log = logging.getLogger(__name__)

FOLDER: Final = "commands"
NAME_PART: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
PLACEHOLDER: Final = re.compile(r"\$(ARGUMENTS\b|[1-9](?!\d))")
MAX_HELP_CHARACTERS: Final = 80
MAX_HOME_COMMANDS: Final = 500
INPUT_PREFIXES: Final = ("/", "!", "#", "@")  # what front ends treat as more than a prompt


class FileCommand(NamedTuple):
    """A command from a file."""

    name: str
    description: str
    hint: str
    body: str
    path: Path

    def prompt(self, words: str) -> str:
        """The prompt for the text after the command's name."""
        is_used = PLACEHOLDER.search(self.body) is not None
        text = PLACEHOLDER.sub(lambda match: _argument(match[1], words), self.body).strip()
        if words and not is_used:
            text = f"{text}\n\nARGUMENTS: {words}"
        if not text:
            raise UsageError(f"/{self.name} is empty: {self.path}")
        # A file must not run a command of Hermes or a shell command as if the user typed it.
        return f"From /{self.name}:\n{text}" if text.startswith(INPUT_PREFIXES) else text


def _argument(name: str, words: str) -> str:
    if name == "ARGUMENTS":
        return words
    try:
        parts = shlex.split(words)
    except ValueError:
        parts = words.split()
    return parts[int(name) - 1] if int(name) <= len(parts) else ""


def file_commands(home: Path, project: Iterable[ProjectFile] = ()) -> dict[str, FileCommand]:
    """The commands by name; those of a project take precedence."""
    trusted = [file for file in project if file.kind is FileKind.COMMAND]
    # `.hermes` takes precedence over `.claude`, and a folder over the root of its repository.
    trusted.sort(key=lambda file: (len(file.folder.parts), _rank(file.folder)))
    found: dict[str, FileCommand] = {}
    for command in (*_home_commands(home / FOLDER), *filter(None, map(_of_project, trusted))):
        found[command.name] = command
    return dict(sorted(found.items()))


def _rank(folder: Path) -> int:
    names = [name for name in COMMAND_FOLDERS if folder.as_posix().endswith(name)]
    return COMMAND_FOLDERS.index(names[0]) if names else 0


def _home_commands(folder: Path) -> Iterator[FileCommand]:
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*.md"))[:MAX_HOME_COMMANDS]:
        try:
            if not path.is_file() or path.stat().st_size > MAX_TEXT_BYTES:
                continue
            text = yaml_reader.read_text(path) or ""
        except (ConfigError, OSError) as error:
            log.warning("command %s ignored: %s", path, error)
            continue
        command = parse_command(path, folder, text)
        if command is not None:
            yield command


def _of_project(file: ProjectFile) -> FileCommand | None:
    return parse_command(file.path, file.folder, file.text)


def parse_command(path: Path, folder: Path, text: str) -> FileCommand | None:
    """The command in a file below *folder*; None if its name cannot be typed."""
    parts = [part.lower() for part in path.relative_to(folder).with_suffix("").parts]
    if not all(NAME_PART.fullmatch(part) for part in parts):
        log.warning("command %s ignored: a name has at most 32 letters, digits, _ and -", path)
        return None
    head, body = split_front_matter(text)
    metadata = _metadata(head, path)
    description = metadata.get("description")
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), "")
    return FileCommand(
        ":".join(parts),
        _line(description if isinstance(description, str) and description.strip() else first),
        _hint(metadata.get("argument-hint")),
        body,
        path,
    )


def _metadata(head: str, path: Path) -> dict[str, object]:
    """The front matter; `argument-hint: [a] [b]`, which is common, is not valid YAML."""
    try:
        return yaml_reader.parse(head, path)
    except ConfigError:
        pairs = (line.partition(":") for line in head.splitlines())
        return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _line(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= MAX_HELP_CHARACTERS:
        return line
    return f"{line[: MAX_HELP_CHARACTERS - 1]}…"


def _hint(value: object) -> str:
    """The hint; `[name]` without quotes is a list in YAML."""
    if isinstance(value, list):
        return _line(" ".join(f"[{item}]" for item in value))
    return _line(value) if isinstance(value, str) else ""
