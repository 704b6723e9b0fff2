"""What a plugin asks for, and what its code uses: shown before it is enabled.

Plugins are not confined: what is declared here informs the user and limits nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_plugin_host.manifest import PluginManifest

USES: Final = {
    "network": (
        "aiohttp", "asyncio.open_connection", "ftplib", "http", "httpx", "imaplib", "requests",
        "smtplib", "socket", "urllib", "urllib3", "websockets",
    ),
    "files": ("glob", "open", "pathlib", "shutil", "sqlite3", "tempfile"),
    "programs": ("multiprocessing", "os.popen", "os.system", "pty", "subprocess"),
    "secrets": ("dotenv", "keyring", "os.environ", "os.getenv"),
    "native code": ("cffi", "ctypes"),
    "code that is loaded later": ("eval", "exec", "importlib", "marshal", "pickle", "runpy"),
}  # fmt: skip


class Permissions(NamedTuple):
    """The permissions that a plugin declares, and what its code uses, by kind."""

    declared: tuple[str, ...]
    secrets: tuple[str, ...]
    uses: dict[str, list[str]]

    def as_dict(self) -> dict[str, object]:
        """For JSON output."""
        return {
            "declared": list(self.declared),
            "secrets": list(self.secrets),
            "uses": self.uses,
        }

    def lines(self) -> list[tuple[str, str]]:
        """For people."""
        rows = [
            ("asks for", "; ".join(self.declared) or "nothing declared"),
            *([("variables", ", ".join(self.secrets))] if self.secrets else []),
        ]
        return rows + [(f"uses {kind}", ", ".join(names)) for kind, names in self.uses.items()]


def read_permissions(folder: Path, manifest: PluginManifest) -> Permissions:
    """The permissions of a plugin in a folder."""
    names: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        names |= _names_used(path)
    uses = {
        kind: found
        for kind, known in USES.items()
        if (found := sorted(name for name in known if _is_used(name, names)))
    }
    return Permissions(manifest.permissions, manifest.requires_env, uses)


def _is_used(name: str, names: set[str]) -> bool:
    return any(used == name or used.startswith(f"{name}.") for used in names)


def _names_used(path: Path) -> set[str]:
    """Imported modules and called names; a file that is not Python has none."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.add(node.func.id)
    return names
