"""Writes a conversation to a Markdown or HTML file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.sandbox.policy import start_up_paths
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home, installation_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.store import SessionDB


# Neither an existing file nor the target of a link, which the agent could have made.
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
OUTSIDE_FOLDER: Final = (
    "Here conversations are saved in the working folder only. Give a name without another folder, "
    "or use `/export` in a terminal."
)
# What no program runs, wherever it lies: the front end may have chosen the working folder, too.
SAVED_SUFFIXES: Final = frozenset({".md", ".html"})
OTHER_NAME: Final = (
    "Here conversations are saved as .md or .html, not as hidden files and not among program files."
    " Choose another name, or use `/export` in a terminal."
)


def save(
    db: SessionDB, session_id: str, folder: Path, name: str = "", *, within_folder: bool = True
) -> Path:
    """Write the conversation as HTML if the suffix is .html, else Markdown; return the path.

    With *within_folder*, as for every front end but a terminal, only below the working folder,
    and only what no program runs.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", session_id).lstrip(".") or "conversation"
    path = folder / Path(name or f"{plain}.md").expanduser()
    if path.is_dir():
        path = path / f"{plain}.md"
    _check_place(path, folder, within_folder=within_folder)
    flags = NEW_FILE if name else os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(path, flags | os.O_CLOEXEC, 0o666), "wb") as file:
            file.writelines(_pieces(db, session_id, is_page=path.suffix.lower() == ".html"))
    except FileExistsError as error:
        raise UsageError(f"{path} already exists. Choose another name.") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    return path


def _check_place(path: Path, folder: Path, *, within_folder: bool) -> None:
    """Refuse a file that a shell or Hermes would run; the text in it is chosen by others."""
    real = Path(os.path.realpath(path.parent), path.name)
    is_inside = real.is_relative_to(folder.resolve())
    if within_folder and not is_inside:
        raise UsageError(OUTSIDE_FOLDER)
    if within_folder and not _is_inert(real, folder.resolve()):
        raise UsageError(OTHER_NAME)
    home, own = Path.home().resolve(), hermes_home().resolve()
    if any(real.is_relative_to(start_up) for start_up in start_up_paths(home)) or (
        real.is_relative_to(own) and not (is_inside and folder.resolve() != own)
    ):
        raise UsageError(f"{path} is a startup file or belongs to Hermes. Choose another name.")


def _is_inert(path: Path, folder: Path) -> bool:
    """Whether no program runs a file of that name, or takes settings from it."""
    is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    is_program = any(path.is_relative_to(program) for program in installation_paths())
    return path.suffix.lower() in SAVED_SUFFIXES and not is_hidden and not is_program


def _pieces(db: SessionDB, session_id: str, *, is_page: bool) -> Iterator[bytes]:
    from hermes_state.portable import html, markdown, readable  # noqa: PLC0415 - rarely wanted

    conversation = readable.ReadOptions(db, readable.NoRedaction(), with_undone=False).conversation(
        session_id
    )
    conversations = [] if conversation is None else [conversation]
    for text in html.pages(conversations) if is_page else markdown.pages(conversations):
        yield readable.to_utf8(text)
