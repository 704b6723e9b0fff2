"""`sessions.json`: an export of the routes for humans and older tools.

Keys that start with an underscore are notes, not session keys; every reader skips them.
"""

from __future__ import annotations

import json
import logging
import shutil
from typing import TYPE_CHECKING, Final, cast

from gateway.routing.sources import SessionEntry
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.rows import StoredRoute

log = logging.getLogger(__name__)

FILE_NAME: Final = "sessions.json"
README_KEY: Final = "_README"
README_TEXT: Final = (
    "Maps each chat to its conversation. Written by the Hermes gateway for humans and older tools; "
    "changes are not read back. Conversations are stored in state.db (see `hermes sessions list`)."
)


def write(folder: Path, entries: dict[str, StoredRoute]) -> None:
    """Write the file atomically."""
    text = json.dumps({README_KEY: README_TEXT, **entries}, indent=2, ensure_ascii=False)
    write_atomically(folder / FILE_NAME, text.encode("utf-8", "surrogatepass"))


def read(folder: Path) -> Iterator[SessionEntry]:
    """The entries of the file; unreadable ones are skipped and logged."""
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError) as error:
        _keep_copy(path, str(error))
        return
    if not isinstance(content, dict):
        _keep_copy(path, "not a JSON object")
        return
    yield from entries(content, str(path))


def entries(content: JsonObject, origin: str) -> Iterator[SessionEntry]:
    """The entries of a JSON object; unreadable ones are skipped and logged."""
    for key, data in content.items():
        if key.startswith("_"):
            continue
        try:
            fields = data if isinstance(data, dict) else {}
            route = cast("StoredRoute", {**fields, "session_key": key})
            yield SessionEntry.from_dict(route)
        except (TypeError, ValueError, KeyError) as error:
            log.warning("%s: entry %r ignored: %s", origin, key, error)


def _keep_copy(path: Path, reason: str) -> None:
    """Copy an unreadable file: the next export overwrites it."""
    copy = path.with_name(f"{FILE_NAME}.unreadable")
    log.warning("%s is unreadable: %s; copied to %s", path, reason, copy.name)
    if path.is_file() and not copy.exists():
        shutil.copyfile(path, copy)
