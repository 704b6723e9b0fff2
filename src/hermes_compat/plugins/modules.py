"""Modules that plugins of hermes-agent import under names that Hermes does not use itself.

The finder is asked after all others, so an installed module of the same name is used.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Final

from hermes_compat.plugins.unsupported import module_reason, refuse_module
from hermes_plugin_host.interface import warn_deprecated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

ORIGINAL_PACKAGE: Final = "hermes_compat.plugins"
MODULES: Final = {
    "hermes_constants": f"{ORIGINAL_PACKAGE}.constants",
    "agent.memory_provider": f"{ORIGINAL_PACKAGE}.memory_provider",
    "tools.registry": f"{ORIGINAL_PACKAGE}.tool_registry",
}
PACKAGES: Final = frozenset({"agent", "tools"})
DEPRECATED: Final = {"tools.registry": "ctx.register_tool"}


class OriginalModules(MetaPathFinder):
    """Finds the modules above; refuses other modules of hermes-agent with the reason."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of a name; None if it has nothing to do with hermes-agent."""
        del path, target
        if fullname in PACKAGES:
            return ModuleSpec(fullname, CopyLoader(""), is_package=True)
        if fullname in MODULES:
            return ModuleSpec(fullname, CopyLoader(MODULES[fullname]))
        if module_reason(fullname):
            raise refuse_module(fullname)
        return None


class CopyLoader(Loader):
    """Fills a module with the names of another one."""

    def __init__(self, source: str) -> None:
        self._source = source

    def exec_module(self, module: ModuleType) -> None:
        """Copy the public names."""
        if module.__name__ in DEPRECATED:
            warn_deprecated(module.__name__, DEPRECATED[module.__name__])
        if self._source:
            source = vars(importlib.import_module(self._source))
            names = {name: value for name, value in source.items() if not name.startswith("__")}
            vars(module).update(names)


def install() -> None:
    """Make the modules available in this process; a second call changes nothing."""
    if not any(isinstance(finder, OriginalModules) for finder in sys.meta_path):
        sys.meta_path.append(OriginalModules())
