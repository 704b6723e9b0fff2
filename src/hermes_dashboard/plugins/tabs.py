"""Tabs that plugins add to the dashboard with a `dashboard/manifest.json`.

Bundled plugins come first; of two with the same name the first wins. Tabs of user plugins
are active only while the plugin is enabled. An invalid manifest becomes a tab with an error.
"""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, PluginError
from hermes_core.json_values import list_in
from hermes_dashboard.caches import config_version, file_version
from hermes_plugin_host.discovery import bundled_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject

Origin = Literal["bundled", "user"]

FOLDER: Final = "dashboard"
MANIFEST: Final = "manifest.json"
MAX_MANIFEST_BYTES: Final = 100_000
PLUGIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
TAB_PATH: Final = re.compile(r"/([A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)?")
BUILT_IN_PATHS: Final = frozenset(
    {
        "/", "/chat", "/sessions", "/ask", "/edits", "/analytics", "/memory", "/schedules",
        "/gateway", "/models", "/mcp", "/hooks", "/permissions", "/data", "/logs", "/plugins",
        "/settings",
    }
)  # fmt: skip
FIXED_PATHS: Final = frozenset({"/plugins", "/settings"})  # needed to disable a plugin
CHOICES: Final = ("plugins.enabled", "plugins.disabled", "dashboard.hidden_plugins")
CHOICE_VARIABLES: Final = tuple(f"HERMES_{name.replace('.', '_').upper()}" for name in CHOICES)
POSITION: Final = re.compile(r"end|(after|before):[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Tab:
    """A tab of a plugin, or its error."""

    name: str
    origin: Origin
    folder: Path
    label: str
    description: str = ""
    icon: str = "Puzzle"
    version: str = ""
    path: str = ""
    position: str = "end"
    override: str | None = None
    is_hidden: bool = False
    slots: tuple[str, ...] = ()
    entry: str = "dist/index.js"
    css: str | None = None
    api: str | None = None
    error: str | None = field(default=None, compare=False)

    @property
    def has_page(self) -> bool:
        """Whether the tab has a page at its path."""
        return not self.is_hidden and self.override is None


def tabs(home: Path, bundled: Path | None = None) -> dict[str, Tab]:
    """All active tabs by name."""
    enabled, disabled, hidden = _choices()
    active: dict[str, Tab] = {}
    modules: set[str] = set()
    for key, tab in _all_tabs(bundled or bundled_folder(), home / "plugins"):
        if key in disabled or (tab.origin == "user" and key not in enabled):
            continue
        module = module_name(tab.name)
        if module not in modules and not {tab.name, key} & hidden:
            active[tab.name] = tab
        modules.add(module)
    return _check_paths(active)


class TabFinder:
    """Finds the active tabs; folders and settings are read again only after a change."""

    def __init__(self, home: Path, bundled: Path | None = None) -> None:
        self._home = home
        self._bundled = bundled or bundled_folder()
        self._lock = threading.Lock()
        self._watched: list[Path] = []
        self._version: list[object] = []
        self._tabs: dict[str, Tab] = {}

    def __call__(self) -> dict[str, Tab]:
        """All active tabs by name."""
        with self._lock:
            if not self._watched or self._current_version() != self._version:
                # A change during the search is found by the next call.
                self._watched = list(self._folders())
                self._version = self._current_version()
                self._tabs = tabs(self._home, self._bundled)
            return dict(self._tabs)

    def _current_version(self) -> list[object]:
        chosen = [os.environ.get(name) for name in CHOICE_VARIABLES]
        return [config_version(), chosen, *map(file_version, self._watched)]

    def _folders(self) -> Iterator[Path]:
        """Every folder in which a manifest may appear, and the manifests."""
        for root in (self._bundled, self._home / "plugins"):
            yield root
            for pattern in ("*", "*/*", f"*/*/{FOLDER}"):
                yield from (path for path in root.glob(pattern) if path.is_dir())
            for _, folder in _folders(root):
                yield folder / FOLDER / MANIFEST


def _check_paths(candidates: dict[str, Tab]) -> dict[str, Tab]:
    """The tabs, with an error where a path is not available."""
    owners: dict[str, str] = {}
    checked: dict[str, Tab] = {}
    for name, tab in candidates.items():
        problem = tab.error or _path_problem(tab, owners)
        checked[name] = replace(tab, error=problem)
        if problem is None and tab.has_page:
            owners[tab.path] = name
    return checked


def _path_problem(tab: Tab, owners: dict[str, str]) -> str | None:
    if tab.override in FIXED_PATHS:
        return f"`tab.override` cannot be {tab.override}: that page cannot be replaced"
    if not tab.has_page:
        return None
    if tab.path == "/" or f"/{tab.path.split('/')[1]}" in BUILT_IN_PATHS:
        return f"`tab.path` cannot be {tab.path}: that is the dashboard's own page"
    if tab.path in owners:
        return f"`tab.path` cannot be {tab.path}: it is used by the plugin {owners[tab.path]}"
    return None


def module_name(name: str) -> str:
    """The module name under which a plugin's API is imported."""
    return f"hermes_dashboard_plugin_{name.replace('-', '_')}"


def _choices() -> tuple[set[str], set[str], set[str]]:
    settings = ConfigFile.of_home().settings()
    try:
        enabled, disabled, hidden = (set(settings.get_list(name)) for name in CHOICES)
    except ConfigError:
        return set(), set(), set()  # `hermes config check` reports the problem
    return enabled, disabled, hidden


def _all_tabs(bundled: Path, users: Path) -> Iterator[tuple[str, Tab]]:
    """All tabs, each with the key of its plugin."""
    roots: Iterable[tuple[Origin, Path]] = (("bundled", bundled), ("user", users))
    for origin, root in roots:
        for key, folder in _folders(root):
            yield key, _tab(folder / FOLDER, folder.name, origin)


def _folders(root: Path) -> Iterator[tuple[str, Path]]:
    for pattern in (f"*/{FOLDER}/{MANIFEST}", f"*/*/{FOLDER}/{MANIFEST}"):
        for manifest in sorted(root.glob(pattern)):
            folder = manifest.parent.parent
            parts = folder.relative_to(root).parts
            if not any(part.startswith((".", "_")) for part in parts):
                yield "/".join(parts), folder


def _tab(folder: Path, name: str, origin: Origin) -> Tab:
    try:
        return _read(folder, name, origin)
    except PluginError as error:
        safe_name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        return Tab(safe_name, origin, folder, name, error=f"{folder / MANIFEST}: {error}")


def _read(folder: Path, name: str, origin: Origin) -> Tab:
    manifest = _document(folder / MANIFEST)
    name = _text(manifest, "name", name)
    if not PLUGIN_NAME.fullmatch(name):
        raise PluginError(f"`name` is {name!r}; only letters, digits, - and _ are allowed")
    tab = manifest.get("tab", {})
    if not isinstance(tab, dict):
        raise PluginError("`tab` must be an object")
    listed = manifest.get("slots", [])
    slots = tuple(item for item in list_in(manifest, "slots") if isinstance(item, str))
    if not isinstance(listed, list) or len(slots) < len(listed):
        raise PluginError("`slots` must be a list of names")
    return Tab(
        name,
        origin,
        folder,
        _text(manifest, "label", name),
        _text(manifest, "description", ""),
        _text(manifest, "icon", "Puzzle"),
        _text(manifest, "version", ""),
        _matching(_text(tab, "path", f"/{name}"), TAB_PATH, "tab.path"),
        _matching(_text(tab, "position", "end"), POSITION, "tab.position"),
        _matching(_text(tab, "override", ""), TAB_PATH, "tab.override") or None,
        tab.get("hidden") is True,
        slots,
        _text(manifest, "entry", "dist/index.js"),
        _text(manifest, "css", "") or None,
        _text(manifest, "api", "") or None,
    )


def _document(path: Path) -> JsonObject:
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise PluginError(f"the file is larger than {MAX_MANIFEST_BYTES} bytes")
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise PluginError(f"the file cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise PluginError("the manifest must be a JSON object")
    return manifest


def _text(fields: JsonObject, key: str, default: str) -> str:
    value = fields.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise PluginError(f"`{key}` must be a string")
    return value or default


def _matching(text: str, pattern: re.Pattern[str], name: str) -> str:
    if text and not pattern.fullmatch(text):
        raise PluginError(f"`{name}` cannot be {text!r}")
    return text
