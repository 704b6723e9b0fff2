"""Loggers that import `logging` with their first entry: most commands write none.

The import takes a tenth of the CPU time of a short command. Modules that such commands load use
`get_logger`; others may use `logging` itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence
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


class LoggingFinder:
    """Finds `logging` as Python does, and opens the log file once it is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of `logging`; None for all other modules."""
        if name != "logging":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if spec is not None:
            self._install_after_import(spec.loader)
        return spec

    def _install_after_import(self, loader: Any) -> None:
        load = loader.exec_module

        def load_and_install(module: ModuleType) -> None:
            load(module)
            sys.meta_path.remove(self)
            _install()

        loader.exec_module = load_and_install


def install() -> None:
    """Write the log entries of this process to the log file, also those of libraries."""
    if "logging" in sys.modules:
        _install()
    else:
        sys.meta_path.insert(0, LoggingFinder())


def _install() -> None:
    from hermes_core import log_file  # noqa: PLC0415 - imports `logging`

    log_file.install()
