"""Discovers plugins: bundled, in HERMES_HOME, and in installed packages."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.errors import PluginError
from hermes_plugin_host.manifest import MANIFEST_NAME, PluginManifest, read_manifest

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
        if (path / MANIFEST_NAME).is_file():
            yield _from_folder(path, path.name, origin)
            continue
        for inner in sorted(path.iterdir()):
            if inner.is_dir() and (inner / MANIFEST_NAME).is_file():
                yield _from_folder(inner, f"{path.name}/{inner.name}", origin)


def _from_folder(folder: Path, key: str, origin: str) -> DiscoveredPlugin:
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
