"""Stages a plugin, so that it can be looked at, and puts it into the folder of plugins."""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
import time
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import paths
from hermes_core.atomic_files import folder_locked
from hermes_core.errors import FetchError, HermesError, PluginError, UsageError
from hermes_plugin_host.discovery import ENTRY_POINT_GROUP
from hermes_plugin_host.importer import libraries_folder
from hermes_plugin_host.installation import libraries, records, sources
from hermes_plugin_host.installation.records import InstalledPlugin, tree_sha256
from hermes_plugin_host.manifest import (
    DASHBOARD_MANIFEST,
    MANIFEST_NAME,
    PluginManifest,
    read_dashboard_manifest,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_plugin_host.installation.sources import PluginSource
    from hermes_plugin_host.manifest import PluginManifest


# What a plugin asks for, and what its code uses: shown before it is enabled.
#
# Plugins are not confined: what is declared here informs the user and limits nothing.

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


PLUGIN_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# The plugin of a package: its files are those of the package.
PACKAGE_CODE: Final = '''"""The plugin of the package {package}."""

from importlib import import_module

register = getattr(import_module("{module}"), "{attribute}")
'''


class StagedPlugin(NamedTuple):
    """A plugin that was fetched and is not installed yet."""

    key: str
    folder: Path
    libraries: Path | None
    source: PluginSource
    commit: str
    manifest: PluginManifest
    requirements: list[str]
    sha256: str
    permissions: Permissions

    def install(self) -> Path:
        """Replace the plugin with this key by this one; the folder."""
        target, shelf = paths.plugins_path() / self.key, libraries_folder(self.key)
        paths.private_folder(shelf.parent)
        with folder_locked(paths.private_folder(target.parent)):
            _replace(target, self.folder)
            _replace(shelf, self.libraries)
            self._record().save()
        return target

    def _record(self) -> InstalledPlugin:
        return InstalledPlugin(
            self.key,
            self.source.kind,
            self.source.location,
            self.source.ref,
            self.commit,
            self.manifest.version,
            self.sha256,
            tuple(self.requirements),
            time.time(),
        )


def _replace(target: Path, new: Path | None) -> None:
    """Put a folder in the place of another one, or of none."""
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as work:
        if target.exists():
            target.rename(Path(work) / "old")
        if new is not None:
            new.rename(target)


@contextmanager
def staged(source: PluginSource, key: str = "") -> Iterator[StagedPlugin]:
    """Fetch a plugin into a temporary folder; *key* is that of the plugin to update."""
    root = paths.private_folder(paths.plugins_path())
    with tempfile.TemporaryDirectory(prefix=".", dir=root) as work:
        folder, shelf = Path(work) / "plugin", Path(work) / "libraries"
        commit = _fetch(source, folder, shelf, key)
        manifest = _manifest(folder)
        chosen = key or _key(manifest, source)
        wanted = libraries.read_requirements(folder, manifest.requirements)
        if wanted and not shelf.exists():
            libraries.install_requirements(wanted, shelf, key)
        if shelf.exists():
            libraries.check_conflicts(chosen, shelf)
        yield StagedPlugin(
            chosen,
            folder,
            shelf if shelf.exists() else None,
            source,
            commit,
            manifest,
            wanted,
            _hash(folder, shelf),
            read_permissions(shelf if source.kind == "package" else folder, manifest),
        )


def _hash(folder: Path, shelf: Path) -> str:
    if not shelf.exists():
        return tree_sha256(folder)
    return records.joined_sha256(tree_sha256(folder), tree_sha256(shelf))


def installed_hash(key: str) -> str:
    """The hash of an installed plugin as it is now."""
    return _hash(paths.plugins_path() / key, libraries_folder(key))


def _fetch(source: PluginSource, folder: Path, shelf: Path, key: str) -> str:
    if source.kind == "path":
        sources.copy_folder(Path(source.location), folder)
    elif source.kind == "git":
        return sources.clone(source, folder)
    else:
        libraries.install_requirements([source.location], shelf, key)
        _write_package_plugin(source.location, folder, shelf)
    return ""


def _write_package_plugin(package: str, folder: Path, shelf: Path) -> None:
    """Write the folder of a plugin that is an entry point of a package."""
    name = re.split(r"[\[=<>!~]", package)[0]
    found = [
        (point, dist)
        for dist in metadata.distributions(path=[str(shelf)])
        for point in dist.entry_points
        if point.group == ENTRY_POINT_GROUP
    ]
    if len(found) != 1:
        raise FetchError(f"{name} is not a plugin: it has {len(found)} entry points of plugins")
    point, dist = found[0]
    folder.mkdir()
    summary = str(dist.metadata.json.get("summary") or "").replace('"', "'")
    lines = [f"name: {point.name}", f'version: "{dist.version}"', f'description: "{summary}"']
    (folder / MANIFEST_NAME).write_text("\n".join(lines) + "\n", "utf-8")
    code = PACKAGE_CODE.format(
        package=name, module=point.module, attribute=point.attr or "register"
    )
    (folder / "__init__.py").write_text(code, "utf-8")


def _manifest(folder: Path) -> PluginManifest:
    try:
        if (folder / MANIFEST_NAME).is_file():
            return read_manifest(folder)
        if (folder / DASHBOARD_MANIFEST).is_file():
            return read_dashboard_manifest(folder)
    except HermesError as error:  # the temporary folder means nothing to the user
        raise PluginError(str(error).replace(f"{folder}/", "")) from error
    raise PluginError(f"this is not a plugin: it has neither {MANIFEST_NAME} nor a dashboard tab")


def _key(manifest: PluginManifest, source: PluginSource) -> str:
    """The key of a new plugin: its own name, else the name of its folder."""
    folder_name = source.location.rstrip("/").rpartition("/")[2].removesuffix(".git")
    # A manifest without a name is named after the temporary folder.
    name = manifest.name if manifest.name != "plugin" else folder_name
    if not PLUGIN_KEY.fullmatch(name):
        raise PluginError(f"{name!r} cannot be the name of a plugin")
    if (paths.plugins_path() / name).exists():
        text = f"{name} is already installed. Run `hermes plugins update {name}`."
        raise UsageError(text)
    return name


def remove_plugin(key: str) -> None:
    """Delete an installed plugin with its packages and its record."""
    target = paths.plugins_path() / key
    if not PLUGIN_KEY.fullmatch(key) or not target.is_dir():
        raise UsageError(f"{key} is not in {paths.plugins_path()}.")
    with folder_locked(target.parent):
        shutil.rmtree(target)
        shutil.rmtree(libraries_folder(key), ignore_errors=True)
        records.forget_record(key)
