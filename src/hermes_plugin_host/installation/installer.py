"""Stages a plugin, so that it can be looked at, and puts it into the folder of plugins."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from hermes_core import paths
from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.errors import FetchError, HermesError, PluginError, UsageError
from hermes_core.system_programs import system_program
from hermes_plugin_host.discovery import ENTRY_POINT_GROUP
from hermes_plugin_host.importer import libraries_folder
from hermes_plugin_host.installation import libraries
from hermes_plugin_host.manifest import (
    DASHBOARD_MANIFEST,
    MANIFEST_NAME,
    PluginManifest,
    read_dashboard_manifest,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_plugin_host.manifest import PluginManifest

SourceKind = Literal["path", "git", "package"]
IGNORED: Final = (".git", "__pycache__", "*.pyc", ".venv", "node_modules")
PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,-]+\])?([=<>!~]=?[\w.*+!-]+)?")
GIT_SECONDS: Final = 300
MAX_PLUGIN_BYTES: Final = 200 << 20
# No hooks and helpers of the repository, no questions.
GIT_OPTIONS: Final = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.ext.allow=never",
    "-c", "advice.detachedHead=false",
)  # fmt: skip


class PluginSource(NamedTuple):
    """A kind of source and its location."""

    kind: SourceKind
    location: str
    ref: str = ""  # branch or tag of a repository

    @classmethod
    def parse(cls, text: str) -> PluginSource:
        """Read what a user gives; UsageError if it is none of the three."""
        if not text.strip():
            raise UsageError("Give a folder, a git URL or the name of a package.")
        path = Path(text).expanduser()
        if path.is_dir() and not (path / "objects").is_dir():  # not a bare repository
            return cls("path", str(path.resolve()))
        location, _, ref = text.partition("#")
        is_repository = "://" in text or text.startswith("git@") or location.endswith(".git")
        if is_repository or path.is_dir():
            return cls("git", location, ref)
        if PACKAGE.fullmatch(text):
            return cls("package", text)
        raise UsageError(f"{text!r} is neither a folder nor a git URL nor the name of a package.")


def copy_folder(source: Path, target: Path) -> None:
    """Copy the files of a plugin; symbolic links, special files and huge folders are refused."""
    size = 0
    for path in _files(source):
        status = path.lstat()
        kind = _refused_kind(status.st_mode)
        if kind:
            raise FetchError(f"the plugin contains {kind}: {path.relative_to(source)}")
        size += status.st_size
    if size > MAX_PLUGIN_BYTES:
        limit = MAX_PLUGIN_BYTES >> 20
        raise FetchError(f"the plugin has {size >> 20} MiB of files; {limit} MiB are allowed")
    try:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*IGNORED))
    except (OSError, shutil.Error) as error:
        raise FetchError(f"the plugin cannot be copied: {error}") from error


def _refused_kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "" if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else "a special file"


def _files(folder: Path) -> Iterator[Path]:
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        yield from (Path(base) / name for name in (*folders, *files))


def clone(source: PluginSource, target: Path) -> str:
    """Copy the files of a repository; returns the commit."""
    checkout = target.with_name(f"{target.name}-checkout")
    branch = ["--branch", source.ref] if source.ref else []
    _git("clone", "--quiet", "--depth", "1", *branch, "--", source.location, str(checkout))
    commit = _git("-C", str(checkout), "rev-parse", "HEAD").strip()
    copy_folder(checkout, target)
    return commit


def _git(*arguments: str) -> str:
    git = system_program("git")
    if git is None:
        raise FetchError("git is not installed")
    try:
        process = subprocess.run(
            [git, *GIT_OPTIONS, *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"git: {error}") from error
    if process.returncode:
        raise FetchError(f"git: {process.stderr.strip() or process.returncode}")
    return process.stdout


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
    return joined_sha256(tree_sha256(folder), tree_sha256(shelf))


def installed_hash(key: str) -> str:
    """The hash of an installed plugin as it is now."""
    return _hash(paths.plugins_path() / key, libraries_folder(key))


def _fetch(source: PluginSource, folder: Path, shelf: Path, key: str) -> str:
    if source.kind == "path":
        copy_folder(Path(source.location), folder)
    elif source.kind == "git":
        return clone(source, folder)
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
        forget_record(key)
