"""What plugins see of this process besides the hooks."""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import TYPE_CHECKING, Any

from hermes_plugin_host.context import PluginContext

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from hermes_plugin_host.manifest import PluginManifest

log = logging.getLogger(__name__)


class PluginInterface:
    """The interface of Hermes; `hermes_compat` adds that of hermes-agent."""

    def context(self, key: str, manifest: PluginManifest) -> PluginContext:
        """The `ctx` of a plugin's `register`."""
        return PluginContext(key, manifest)

    def loading(self, context: PluginContext) -> AbstractContextManager[None]:
        """Entered while the plugin of *context* is loaded."""
        del context
        return contextlib.nullcontext()

    def install_modules(self) -> None:
        """Make modules available that plugins import."""

    def facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a hook as its callbacks get them."""
        return facts


@functools.cache  # once in a process
def warn_deprecated(name: str, instead: str) -> None:
    """Log that a name is deprecated, once."""
    log.warning("%s is deprecated: use %s", name, instead)
