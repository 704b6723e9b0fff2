"""`.mcp.json` of a project, as `hermes mcp add --project` writes it."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.config import PROJECT_SECTION
from hermes_agent.project.files import MCP_FILE
from hermes_agent.project.folders import repository_root
from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_core.json_values import object_in, parse_object

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.json_values import JsonObject

NEW_FILE_MODE: Final = 0o644  # a file of the repository, not a private one


class ProjectMcpFile:
    """The file; other keys in it are kept."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_folder(cls, cwd: Path) -> ProjectMcpFile:
        """The file at the root of the repository that *cwd* is in."""
        return cls(repository_root(cwd) / MCP_FILE)

    def add(self, name: str, fields: JsonObject) -> None:
        """Add a server."""
        document = self._read()
        servers = object_in(document, PROJECT_SECTION)
        if name in servers:
            raise UsageError(f"{name} already exists in {self.path}.")
        self._write({**document, PROJECT_SECTION: {**servers, name: fields}})

    def remove(self, name: str) -> None:
        """Remove a server."""
        document = self._read()
        servers = object_in(document, PROJECT_SECTION)
        if name not in servers:
            raise UsageError(f"No server {name!r} in {self.path}. See `hermes mcp list`.")
        rest = {key: fields for key, fields in servers.items() if key != name}
        self._write({**document, PROJECT_SECTION: rest})

    def _read(self) -> JsonObject:
        if not self.path.exists():
            return {}
        document = parse_object(self.path.read_text("utf-8-sig"))
        if document is None:
            raise UsageError(f"{self.path} is not a JSON object; fix it by hand.")
        return document

    def _write(self, document: JsonObject) -> None:
        if self.path.is_symlink():
            raise UsageError(f"{self.path} is a link; edit the file it points to.")
        mode = stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else NEW_FILE_MODE
        write_atomically(self.path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        self.path.chmod(mode)
