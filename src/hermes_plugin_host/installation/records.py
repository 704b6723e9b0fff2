"""Records of installed plugins: where they came from, and the hash of their files."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core import paths
from hermes_core.atomic_files import write_atomically
from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from pathlib import Path

RECORDS_FOLDER: Final = ".installed"


class InstalledPlugin(NamedTuple):
    """A plugin that `hermes plugins install` has installed."""

    key: str
    kind: str
    location: str
    ref: str
    commit: str
    version: str
    sha256: str
    requirements: tuple[str, ...]
    installed_at: float

    def save(self) -> None:
        """Write the record."""
        path = _path(self.key)
        paths.private_folder(path.parent)
        write_atomically(path, json.dumps(self._asdict(), indent=2))


def _path(key: str) -> Path:
    return paths.plugins_path() / RECORDS_FOLDER / f"{key}.json"


def find_record(key: str) -> InstalledPlugin | None:
    """The record of a plugin; None if it was not installed by a command."""
    try:
        fields: dict[str, Any] = json.loads(_path(key).read_bytes())
        fields["requirements"] = tuple(fields.get("requirements", ()))
        return InstalledPlugin(**fields)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, OSError) as error:
        raise PluginError(f"the record of {key} cannot be read: {error}") from error


def forget_record(key: str) -> None:
    """Delete the record of a plugin."""
    _path(key).unlink(missing_ok=True)


def tree_sha256(folder: Path) -> str:
    """The hash of the names and contents of all files, without compiled ones."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(folder).as_posix().encode()
            content = hashlib.sha256(path.read_bytes()).digest()
            digest.update(len(name).to_bytes(4, "big") + name + content)
    return digest.hexdigest()


def joined_sha256(*hashes: str) -> str:
    """One hash for several."""
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()
