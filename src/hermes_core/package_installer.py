"""Installing pinned packages into a folder, with whatever installs packages here."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import folder_locked
from hermes_core.errors import FetchError
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Progress = Callable[[str], object]

TICK_SECONDS: Final = 0.2
LAST_LINES: Final = 6
NO_ROOM: Final = ("no space left", "os error 28", "disk quota")
NO_NETWORK: Final = (
    "dns error",
    "error sending request",
    "failed to fetch",
    "name resolution",
    "newconnectionerror",
    "connection refused",
    "network is unreachable",
    "tcp connect",
    "timed out",
    "no route to host",
    "proxyerror",
    "certificate",
)
# uv trusts the certificates of this machine, as pip does; the name differs by release.
CERTIFICATES: Final = {"UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}


class Pins(NamedTuple):
    """Packages with their hashes, and what to call them."""

    lock: Path
    title: str
    download_mb: int
    disk_mb: int


def install(pins: Pins, folder: Path, progress: Progress) -> None:
    """Put packages into a folder; the first installer that can do it does it."""
    said = ""
    with tempfile.TemporaryDirectory() as room:
        for command in installers(Path(room)):
            wanted = [
                "--target",
                str(folder),
                "--no-deps",
                "--require-hashes",
                "-r",
                str(pins.lock),
            ]
            said = _run([*command, "--only-binary", ":all:", *wanted], pins, progress)
            if not said:
                return
            shutil.rmtree(folder, ignore_errors=True)
            if _has(said, NO_ROOM):
                break
    raise FetchError(_reason(said, pins))


def installers(room: Path) -> Iterator[list[str]]:
    """Commands that install packages, the best first.

    pip follows uv even where there is one: machines behind a mirror or a proxy often have
    it told to pip alone. An environment made by `./hermes` has neither; the interpreter
    behind it has pip, or can make a place that has it.
    """
    uv = [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") else []
    if not uv and (found := shutil.which("uv")):
        uv = [found]
    if uv:
        yield [*uv, "pip", "install", "--quiet", "--python", sys.executable]
    python = _python_with_pip(room)
    if python:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        yield [*pip, "--no-input", "--retries", "1", "--root-user-action", "ignore"]
    elif not uv:
        raise FetchError(
            "there is neither uv nor pip to fetch it with; install one of them, for example: "
            "apt install python3-pip"
        )


def _python_with_pip(room: Path) -> str:
    """An interpreter that runs pip: ours, the one behind it, or a new place; else empty."""
    base = str(Path(sys.executable).resolve())
    for python in (sys.executable, base):
        if _succeeds([python, "-m", "pip", "--version"]):
            return python
    if _succeeds([base, "-m", "venv", str(room / "pip")]):
        return str(room / "pip" / "bin" / "python")
    return ""


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(command: list[str], pins: Pins, progress: Progress) -> str:
    """Run an installer and count the seconds; empty when it went well, else what it said."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **CERTIFICATES},
        ) as process:
            try:
                while (code := _waited(process)) is None:
                    seconds = time.monotonic() - began
                    progress(f"fetching {pins.title} ({pins.download_mb} MB) … {seconds:.0f} s")
            except BaseException:
                process.kill()
                raise
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()
    return (said or f"the installer ended with {code}") if code else ""


def _waited(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(TICK_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _reason(said: str, pins: Pins) -> str:
    """What went wrong, and what to do about it."""
    if _has(said, NO_ROOM):
        return f"the disk is full; {pins.title} takes {pins.disk_mb} MB. Make room and try again"
    end = "\n".join(f"  {line}" for line in said.splitlines()[-LAST_LINES:])
    if _has(said, NO_NETWORK):
        return (
            "the package index cannot be reached. Is there a network? Behind a proxy or a "
            f"mirror, uv and pip have to know of it. What was said:\n{end}"
        )
    return f"{pins.title} could not be fetched. What the installer said:\n{end}"


def _has(said: str, words: tuple[str, ...]) -> bool:
    return any(word in said.lower() for word in words)


STAMP: Final = "installed.lock"  # a copy of the pins, written last


class Library(NamedTuple):
    """Something that can be fetched: what it is for, how it is imported, its pins."""

    name: str
    label: str
    imported: str
    lock: Path
    download_mb: int
    disk_mb: int

    @property
    def folder(self) -> Path:
        """Where it is, once it was fetched."""
        return hermes_home() / "libraries" / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether exactly the pinned packages are there."""
        try:
            return (self.folder / STAMP).read_bytes() == self.lock.read_bytes()
        except OSError:
            return False

    def is_usable(self) -> bool:
        """Whether it can be imported; what was fetched is made known."""
        if importlib.util.find_spec(self.imported) is not None:
            return True
        folder = str(self.folder)
        if self.is_fetched and folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()
        return importlib.util.find_spec(self.imported) is not None

    def fetch(self, progress: Progress) -> bool:
        """Have it in place; whether anything had to be fetched."""
        with folder_locked(private_folder(self.folder.parent)):
            if self.is_usable():
                return False
            pins = Pins(self.lock, f"the library for {self.label}", self.download_mb, self.disk_mb)
            with tempfile.TemporaryDirectory(prefix=".", dir=self.folder.parent) as work:
                fresh = Path(work) / self.name
                try:
                    install(pins, fresh, progress)
                finally:
                    progress("")
                shutil.copyfile(pins.lock, fresh / STAMP)
                if self.folder.exists():
                    self.folder.rename(Path(work) / "old")
                fresh.rename(self.folder)
        return self.is_usable()
