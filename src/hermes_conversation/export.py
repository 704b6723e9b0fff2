"""Writes a conversation to a Markdown or HTML file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB


# Neither an existing file nor the target of a link, which the agent could have made.
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def save(db: SessionDB, session_id: str, folder: Path, name: str = "") -> Path:
    """Write the conversation as HTML if the suffix is .html, else Markdown; return the path."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", session_id).lstrip(".") or "conversation"
    path = folder / Path(name or f"{plain}.md").expanduser()
    if path.is_dir():
        path = path / f"{plain}.md"
    flags = NEW_FILE if name else os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(path, flags | os.O_CLOEXEC, 0o666), "wb") as file:
            file.writelines(_pieces(db, session_id, is_page=path.suffix.lower() == ".html"))
    except FileExistsError as error:
        raise UsageError(f"{path} already exists. Choose another name.") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    return path


def _pieces(db: SessionDB, session_id: str, *, is_page: bool) -> Iterator[bytes]:
    from hermes_state.portable import html, markdown, readable  # noqa: PLC0415 - rarely wanted

    conversation = readable.ReadOptions(db, readable.NoRedaction(), with_undone=False).conversation(
        session_id
    )
    conversations = [] if conversation is None else [conversation]
    for text in html.pages(conversations) if is_page else markdown.pages(conversations):
        yield readable.to_utf8(text)
