"""How this copy of Hermes was installed: a checkout, or a package of pip, pipx or uv."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

CHECKOUT: Final = "checkout"
# Folders in which the installers of programs keep an environment for each program.
_ENVIRONMENTS: Final = (("uv", "tools"), ("pipx", "venvs"))


class Distribution(NamedTuple):
    """The kind of an installation, and its folder."""

    kind: str  # checkout, uv, pipx or pip
    folder: Path

    @property
    def is_checkout(self) -> bool:
        """Whether the program runs from its sources."""
        return self.kind == CHECKOUT

    @property
    def launcher(self) -> Path:
        """The program that the user starts."""
        return self.folder / "hermes" if self.is_checkout else Path(sys.prefix) / "bin" / "hermes"


def find_distribution() -> Distribution:
    """The distribution of this process."""
    sources = Path(__file__).resolve().parents[1]
    root = sources.parent
    if sources.name == "src" and (root / "hermes").is_file():
        return Distribution(CHECKOUT, root)
    prefix = Path(sys.prefix).resolve()
    for parent, child in _ENVIRONMENTS:
        if prefix.parent.name == child and prefix.parent.parent.name == parent:
            return Distribution(parent, prefix)
    return Distribution("pip", prefix)
