"""Discovers plugins: bundled, in HERMES_HOME, and in installed packages."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.errors import PluginError
from hermes_plugin_host.manifest import (
    DASHBOARD_KIND,
    DASHBOARD_MANIFEST,
    MANIFEST_NAME,
    PluginManifest,
    read_dashboard_manifest,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY_POINT_GROUP: Final = "hermes_agent.plugins"


@dataclass(frozen=True)
class DiscoveredPlugin:
    """A discovered plugin, loaded or not. Its key is its path: `name` or `group/name`."""

    key: str
    origin: str
    manifest: PluginManifest
    folder: Path | None = None
    entry_point: metadata.EntryPoint | None = field(default=None, compare=False)
    problem: str = ""

    @property
    def has_dashboard(self) -> bool:
        """Whether it adds a tab to the dashboard."""
        return self.folder is not None and (self.folder / DASHBOARD_MANIFEST).is_file()

    @property
    def is_always_active(self) -> bool:
        """Whether it is active unless it is disabled: a tab that comes with Hermes."""
        return self.origin == "bundled" and self.manifest.kind == DASHBOARD_KIND


def bundled_folder() -> Path:
    """The bundled plugins: in the checkout, or inside the installed package."""
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent / "plugins"
    return checkout if checkout.is_dir() else package / "bundled_plugins"


def discover() -> dict[str, DiscoveredPlugin]:
    """All plugins by key; of two with one key the later source wins."""
    result: dict[str, DiscoveredPlugin] = {}
    for origin, folder in (("bundled", bundled_folder()), ("user", paths.plugins_path())):
        result.update({item.key: item for item in discover_in_folder(folder, origin)})
    result.update({item.key: item for item in discover_packages()})
    return dict(sorted(result.items()))


def discover_in_folder(folder: Path, origin: str) -> Iterator[DiscoveredPlugin]:
    """The plugins below *folder*, at most two levels deep."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")) or not path.is_dir():
            continue
        if _is_plugin(path):
            yield _from_folder(path, path.name, origin)
            continue
        for inner in sorted(path.iterdir()):
            if _is_plugin(inner) and not inner.name.startswith((".", "_")):
                yield _from_folder(inner, f"{path.name}/{inner.name}", origin)


def _is_plugin(folder: Path) -> bool:
    return (folder / MANIFEST_NAME).is_file() or (folder / DASHBOARD_MANIFEST).is_file()


def _from_folder(folder: Path, key: str, origin: str) -> DiscoveredPlugin:
    if not (folder / MANIFEST_NAME).is_file():
        return DiscoveredPlugin(key, origin, read_dashboard_manifest(folder), folder)
    try:
        return DiscoveredPlugin(key, origin, read_manifest(folder), folder)
    except PluginError as error:
        return DiscoveredPlugin(
            key, origin, PluginManifest(folder.name), folder, problem=str(error)
        )


def discover_packages() -> Iterator[DiscoveredPlugin]:
    """Plugins of installed packages."""
    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        version = point.dist.version if point.dist else ""
        yield DiscoveredPlugin(
            point.name, "package", PluginManifest(point.name, version), entry_point=point
        )
