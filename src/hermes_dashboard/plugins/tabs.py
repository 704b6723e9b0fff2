"""Tabs that plugins add to the dashboard: found by their `dashboard/manifest.json`.

Bundled plugins come first, and of two with one name the first wins. What a user's plugin
brings counts only while the plugin is enabled. A manifest that cannot be used becomes a tab
that says why.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, PluginError
from hermes_plugin_host.discovery import bundled_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Origin = Literal["bundled", "user"]

FOLDER: Final = "dashboard"
MANIFEST: Final = "manifest.json"
MAX_MANIFEST: Final = 100_000
PLUGIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
PLACE: Final = re.compile(r"/([A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)?")
HOUSE: Final = frozenset(
    {"/", "/chat", "/sessions", "/analytics", "/gateway", "/hooks", "/plugins", "/settings"}
)
NOT_REPLACED: Final = frozenset({"/plugins", "/settings"})  # where a plugin is put off again
POSITION: Final = re.compile(r"end|(after|before):[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Tab:
    """What a plugin shows, or why it cannot."""

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
        """Whether it is opened under its path."""
        return not self.is_hidden and self.override is None


def tabs(home: Path, bundled: Path | None = None) -> dict[str, Tab]:
    """Every tab that counts now, by name."""
    enabled, disabled, hidden = _choices()
    found: dict[str, Tab] = {}
    taken: set[str] = set()
    for key, tab in _all(bundled or bundled_folder(), home / "plugins"):
        if key in disabled or (tab.origin == "user" and key not in enabled):
            continue
        module = module_name(tab.name)
        if module not in taken and not {tab.name, key} & hidden:
            found[tab.name] = tab
        taken.add(module)
    return _in_place(found)


def _in_place(found: dict[str, Tab]) -> dict[str, Tab]:
    """The same; one that wants a place that is somebody else's says so."""
    owners: dict[str, str] = {}
    placed: dict[str, Tab] = {}
    for name, tab in found.items():
        problem = tab.error or _misplaced(tab, owners)
        placed[name] = replace(tab, error=problem)
        if problem is None and tab.has_page:
            owners[tab.path] = name
    return placed


def _misplaced(tab: Tab, owners: dict[str, str]) -> str | None:
    if tab.override in NOT_REPLACED:
        return f"`tab.override` cannot be {tab.override}: that page is not replaced"
    if not tab.has_page:
        return None
    if tab.path == "/" or f"/{tab.path.split('/')[1]}" in HOUSE:
        return f"`tab.path` cannot be {tab.path}: that is the dashboard's own page"
    if tab.path in owners:
        return f"`tab.path` cannot be {tab.path}: the plugin {owners[tab.path]} is there"
    return None


def module_name(name: str) -> str:
    """Under which name a plugin's Python is imported."""
    return f"hermes_dashboard_plugin_{name.replace('-', '_')}"


def _choices() -> tuple[set[str], set[str], set[str]]:
    settings = ConfigFile.of_home().settings()
    names = ("plugins.enabled", "plugins.disabled", "dashboard.hidden_plugins")
    try:
        enabled, disabled, hidden = (set(settings.get_list(one)) for one in names)
    except ConfigError:
        return set(), set(), set()  # `hermes config check` says what is wrong
    return enabled, disabled, hidden


def _all(bundled: Path, users: Path) -> Iterator[tuple[str, Tab]]:
    """Each with the key under which its plugin is enabled."""
    places: Iterable[tuple[Origin, Path]] = (("bundled", bundled), ("user", users))
    for origin, root in places:
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
        usable = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        return Tab(usable, origin, folder, name, error=f"{folder / MANIFEST}: {error}")


def _read(folder: Path, name: str, origin: Origin) -> Tab:
    facts = _document(folder / MANIFEST)
    name = _text(facts, "name", name)
    if not PLUGIN_NAME.fullmatch(name):
        raise PluginError(f"`name` is {name!r}; it has letters, digits, - and _")
    place = facts.get("tab", {})
    if not isinstance(place, dict):
        raise PluginError("`tab` must be an object")
    slots = facts.get("slots", [])
    if not isinstance(slots, list) or not all(isinstance(one, str) for one in slots):
        raise PluginError("`slots` must be a list of names")
    return Tab(
        name,
        origin,
        folder,
        _text(facts, "label", name),
        _text(facts, "description", ""),
        _text(facts, "icon", "Puzzle"),
        _text(facts, "version", ""),
        _fitting(_text(place, "path", f"/{name}"), PLACE, "tab.path"),
        _fitting(_text(place, "position", "end"), POSITION, "tab.position"),
        _fitting(_text(place, "override", ""), PLACE, "tab.override") or None,
        place.get("hidden") is True,
        tuple(slots),
        _text(facts, "entry", "dist/index.js"),
        _text(facts, "css", "") or None,
        _text(facts, "api", "") or None,
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_MANIFEST:
            raise PluginError("it is too large for a manifest")
        facts = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise PluginError(f"it cannot be read: {error}") from error
    if not isinstance(facts, dict):
        raise PluginError("it must be an object")
    return facts


def _text(facts: dict[str, Any], key: str, default: str) -> str:
    value = facts.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise PluginError(f"`{key}` must be a text")
    return value or default


def _fitting(text: str, pattern: re.Pattern[str], name: str) -> str:
    if text and not pattern.fullmatch(text):
        raise PluginError(f"`{name}` cannot be {text!r}")
    return text
