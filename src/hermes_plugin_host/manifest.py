"""The manifest of a plugin: `plugin.yaml`, or that of its dashboard tab."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError, PluginError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST_NAME: Final = "plugin.yaml"
DASHBOARD_MANIFEST: Final = "dashboard/manifest.json"
PERMISSION_KINDS: Final = ("network", "files", "secrets")
DASHBOARD_KIND: Final = "dashboard"  # of a plugin that is only a tab
# The kinds that hermes-agent defines.
PLUGIN_KINDS: Final = ("standalone", "backend", "exclusive", "platform", "model-provider")


@dataclass(frozen=True)
class PluginManifest:
    """The metadata of a plugin."""

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    kind: str = "standalone"
    requires_env: tuple[str, ...] = ()
    provides_tools: tuple[str, ...] = ()
    provides_hooks: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()  # packages
    permissions: tuple[str, ...] = ()  # e.g. `network: api.example.org`


def read_manifest(folder: Path) -> PluginManifest:
    """Read the manifest of the plugin in *folder*; raise PluginError if it is invalid."""
    path = folder / MANIFEST_NAME
    try:
        text = yaml_reader.read_text(path)
        values = yaml_reader.parse(text or "", path)
    except ConfigError as error:
        raise PluginError(str(error)) from error
    kind = str(values.get("kind") or "standalone")
    if kind not in PLUGIN_KINDS:
        raise PluginError(f"{path}: invalid kind '{kind}': use {', '.join(PLUGIN_KINDS)}")
    return PluginManifest(
        name=str(values.get("name") or folder.name),
        version=str(values.get("version") or ""),
        description=str(values.get("description") or ""),
        author=str(values.get("author") or ""),
        kind=kind,
        requires_env=_names(values, "requires_env", path),
        provides_tools=_names(values, "provides_tools", path),
        provides_hooks=_names(values, "provides_hooks", path),
        requirements=_names(values, "requirements", path),
        permissions=_permissions(values.get("permissions"), path),
    )


def _permissions(value: Any, path: Path) -> tuple[str, ...]:
    """`network`, `files` and `secrets`, each with a list, a text or true."""
    if value is None:
        return ()
    if not isinstance(value, dict) or not set(value) <= set(PERMISSION_KINDS):
        raise PluginError(f"{path}: permissions may have the keys {', '.join(PERMISSION_KINDS)}")
    texts = []
    for kind, what in value.items():
        items = what if isinstance(what, list) else [] if what in (None, False, True) else [what]
        if what:
            texts.append(f"{kind}: {', '.join(map(str, items))}" if items else str(kind))
    return tuple(texts)


def read_dashboard_manifest(folder: Path) -> PluginManifest:
    """The metadata of a plugin without `plugin.yaml`, from the manifest of its tab.

    The dashboard reports an invalid manifest, so one is not an error here.
    """
    try:
        fields = json.loads((folder / DASHBOARD_MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        fields = {}
    values = fields if isinstance(fields, dict) else {}
    return PluginManifest(
        name=str(values.get("name") or folder.name),
        version=str(values.get("version") or ""),
        description=str(values.get("description") or values.get("label") or ""),
        author=str(values.get("author") or ""),
        kind=DASHBOARD_KIND,
    )


def _names(values: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    result = values.get(key) or ()
    if not isinstance(result, (list, tuple)):
        raise PluginError(f"{path}: {key} must be a list of names")
    return tuple(
        str(item.get("name", "")) if isinstance(item, dict) else str(item) for item in result
    )
