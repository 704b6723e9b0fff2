"""Loggers that import `logging` with their first entry: most commands write none.

The import takes a tenth of the CPU time of a short command. Modules that such commands load use
`get_logger`; others may use `logging` itself.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class LazyLogger:
    """Stands for a logger of `logging`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """A method or an attribute of the logger."""
        import logging  # noqa: PLC0415 - see the module

        return getattr(logging.getLogger(self._name), attribute)


def get_logger(name: str) -> logging.Logger:
    """The logger with this name."""
    return cast("logging.Logger", LazyLogger(name))


LOG_FILE_MODULE: Final = "hermes_core.log_file"


class LoggingFinder:
    """Finds `logging` as Python does, and opens the log file once it is imported.

    It stays among the finders: removing it would make another import that goes through them at
    that moment skip one. The module of the log file may be what imports `logging`, so the file is
    opened when both are imported.
    """

    def __init__(self) -> None:
        self._names = {"logging", LOG_FILE_MODULE}  # to wait for

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of one of the two modules; None for all others."""
        if name not in self._names:
            return None
        others = (each for each in sys.meta_path if each is not self and hasattr(each, "find_spec"))
        spec = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if spec is not None:
            spec.loader = cast("Any", NotifyingLoader(spec.loader, self._end))
        return spec

    def _end(self, module: ModuleType) -> None:
        if module.__name__ == "logging":
            importlib.import_module(LOG_FILE_MODULE)
        elif self._names:
            self._names = set()
            module.install()


class NotifyingLoader:
    """Loads a module as another loader does, then calls *end*."""

    def __init__(self, loader: Any, end: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._end = end

    def __getattr__(self, attribute: str) -> Any:
        """A method of the other loader."""
        return getattr(self._loader, attribute)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, which is left with the other loader."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._end(module)


def install() -> None:
    """Write the log entries of this process to the log file, also those of libraries."""
    if "logging" in sys.modules:
        importlib.import_module(LOG_FILE_MODULE).install()
    else:
        sys.meta_path.insert(0, LoggingFinder())
