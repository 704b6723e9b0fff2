"""`sessions.json`: the routes in one file, for people and older tools.

Keys that begin with an underscore are notes, not places; every reader skips them.
"""

from __future__ import annotations

import json
import logging
import shutil
from typing import TYPE_CHECKING, Any, Final

from gateway.routing.entries import SessionEntry
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

NAME: Final = "sessions.json"
NOTE: Final = "_README"
README: Final = (
    "Where each chat's messages go, written by the Hermes gateway for people and older tools. "
    "It is not the list of conversations: those are in state.db, and `hermes sessions list` shows "
    "them. Changes here are not read back."
)


def write(folder: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Write the file, whole or not at all."""
    text = json.dumps({NOTE: README, **entries}, indent=2, ensure_ascii=False)
    write_atomically(folder / NAME, text.encode("utf-8", "surrogatepass"))


def read(folder: Path) -> Iterator[SessionEntry]:
    """The entries of the file; what cannot be read is left out, and said."""
    path = folder / NAME
    try:
        content = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError) as error:
        _set_aside(path, str(error))
        return
    if not isinstance(content, dict):
        _set_aside(path, "it holds no routes")
        return
    yield from entries(content, str(path))


def entries(content: dict[str, Any], where: str) -> Iterator[SessionEntry]:
    """What is noted about each place; what cannot be read is left out, and said."""
    for key, data in content.items():
        if key.startswith("_"):
            continue
        try:
            yield SessionEntry.from_dict({**data, "session_key": key})
        except (TypeError, ValueError, KeyError) as error:
            log.warning("%s: the entry %r is left out: %s", where, key, error)


def _set_aside(path: Path, why: str) -> None:
    """Keep a file that cannot be read: the next one that is written takes its name."""
    kept = path.with_name(f"{NAME}.unreadable")
    log.warning("%s cannot be read (%s) and is kept as %s", path, why, kept.name)
    if path.is_file() and not kept.exists():
        shutil.copyfile(path, kept)
