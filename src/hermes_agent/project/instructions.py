"""Instruction files: AGENTS.md, or CLAUDE.md where a folder has no AGENTS.md.

The global file comes first, then those of the folders from the root of the repository down to
the working folder. The nearest is the most specific, so it comes last and is cut last.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from hermes_agent.permissions.file_access import FileAccess
from hermes_agent.project.files import folders_to
from hermes_agent.tools.real_paths import open_file
from hermes_core.paths import hermes_home

NAMES: Final = ("AGENTS.md", "CLAUDE.md")  # the first one that a folder has
MIN_PART_BYTES: Final = 200  # a shorter part of a file is left out
ADVICE: Final = "Shorten the instruction files, or move details to a skill."


class InstructionFile(NamedTuple):
    """A file with instructions; *text* is its beginning if it is longer than can be used."""

    path: Path
    text: str
    size: int  # of the file, in bytes


class Instructions(NamedTuple):
    """The text for the prompt, and notices for the user about what it leaves out."""

    text: str = ""
    notices: tuple[str, ...] = ()


def read_instructions(cwd: Path, max_bytes: int) -> Instructions:
    """The instructions for a conversation in *cwd*, at most *max_bytes* of them."""
    remaining, parts, notices = max_bytes, [], []
    for file in reversed(_files(cwd, max_bytes)):
        used = _beginning(file.text, remaining)
        remaining -= len(used.encode())
        used_bytes = len(used.encode())
        is_cut = len(used) < len(file.text) or file.size > len(file.text.encode())
        if is_cut and used_bytes < min(MIN_PART_BYTES, max_bytes):
            remaining += used_bytes
            parts.append(f"(The instructions in {file.path} are left out: no space.)")
            notices.append(f"{file.path} was not read: {_limit_text(max_bytes)} {ADVICE}")
        elif is_cut:
            parts.append(f"{_heading(file)}\n{used}\n(cut; the rest is in {file.path})")
            notices.append(
                f"The model reads only the first {used_bytes:,} of {file.size:,} bytes of "
                f"{file.path}: {_limit_text(max_bytes)} {ADVICE}"
            )
        else:
            parts.append(f"{_heading(file)}\n{used}")
    return Instructions("\n\n".join(reversed(parts)), tuple(reversed(notices)))


def _heading(file: InstructionFile) -> str:
    return f"## {file.path}"


def _limit_text(max_bytes: int) -> str:
    return f"instruction files may have {max_bytes:,} bytes together."


def _files(cwd: Path, max_bytes: int) -> list[InstructionFile]:
    """The files that exist, the global one first."""
    found: dict[Path, InstructionFile] = {}
    home = hermes_home()
    for folder in (home, *folders_to(cwd)):
        for path in (folder / name for name in NAMES):
            real = Path(os.path.realpath(path))
            file = _read(path, real, max_bytes, None if folder == home else cwd)
            if file is not None:
                found.setdefault(real, file)
                break
    return [file for file in found.values() if file.text]


def _read(path: Path, real: Path, max_bytes: int, cwd: Path | None) -> InstructionFile | None:
    """A file as *path* names it; without *cwd*, one of the Hermes folder.

    A command could make a file of a project a link to a hidden file, or a pipe.
    """
    try:
        with os.fdopen(open_file(real), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            if cwd is not None and FileAccess(hermes_home(), Path.home()).is_hidden(real, cwd):
                return None
            data = file.read(max_bytes + 1)
    except OSError:
        return None
    text = data.decode(errors="replace").strip()
    return InstructionFile(
        path, text, status.st_size if len(data) > max_bytes else len(text.encode())
    )


def _beginning(text: str, max_bytes: int) -> str:
    """The beginning of a text, cut at a line end if possible."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    result = data[: max(max_bytes, 0)].decode(errors="ignore")
    return result[: result.rfind("\n")] if "\n" in result else result
