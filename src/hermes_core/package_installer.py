"""Installs pinned packages into a folder, with uv or pip."""

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
from hermes_core.system_programs import installer_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Progress = Callable[[str], object]

POLL_SECONDS: Final = 0.2
SHOWN_OUTPUT_LINES: Final = 6
DISK_FULL_ERRORS: Final = ("no space left", "os error 28", "disk quota")
NETWORK_ERRORS: Final = (
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
# Make uv use the system certificates, as pip does; the variable differs by release.
CERTIFICATE_VARIABLES: Final = {"UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}


class PinnedPackages(NamedTuple):
    """A lock file of packages with hashes, and a title for messages."""

    lock: Path
    title: str
    download_mb: int
    disk_mb: int


def install(pins: PinnedPackages, folder: Path, progress: Progress) -> None:
    """Install packages into a folder with the first installer that succeeds."""
    output = ""
    with tempfile.TemporaryDirectory() as work:
        for command in installers(Path(work)):
            arguments = [
                "--target",
                str(folder),
                "--no-deps",
                "--require-hashes",
                "-r",
                str(pins.lock),
            ]
            output = _run([*command, "--only-binary", ":all:", *arguments], pins, progress)
            if not output:
                return
            shutil.rmtree(folder, ignore_errors=True)
            if _contains_any(output, DISK_FULL_ERRORS):
                break
    raise FetchError(_error_message(output, pins))


def installers(work: Path) -> Iterator[list[str]]:
    """Commands that install packages, in order of preference.

    pip is tried after uv, because a mirror or a proxy is often configured only for pip. An
    environment created by `./hermes` has neither; its base interpreter has pip, or can
    create an environment with pip.
    """
    uv = [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") else []
    if not uv and (path := installer_program("uv")):
        uv = [path]
    if uv:
        yield [*uv, "pip", "install", "--quiet", "--python", sys.executable]
    python = _python_with_pip(work)
    if python:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        yield [*pip, "--no-input", "--retries", "1", "--root-user-action", "ignore"]
    elif not uv:
        raise FetchError(
            "neither uv nor pip is available; install one of them, for example: "
            "apt install python3-pip"
        )


def _python_with_pip(work: Path) -> str:
    """An interpreter with pip: the current one, its base, or a new environment; or ''."""
    base = str(Path(sys.executable).resolve())
    for python in (sys.executable, base):
        if _succeeds([python, "-m", "pip", "--version"]):
            return python
    if _succeeds([base, "-m", "venv", str(work / "pip")]):
        return str(work / "pip" / "bin" / "python")
    return ""


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(command: list[str], pins: PinnedPackages, progress: Progress) -> str:
    """Run an installer and report the time; returns its output if it failed, otherwise ''."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **CERTIFICATE_VARIABLES},
        ) as process:
            try:
                while (code := _wait(process)) is None:
                    seconds = time.monotonic() - started
                    progress(f"Downloading {pins.title} ({pins.download_mb} MB)… {seconds:.0f} s")
            except BaseException:
                process.kill()
                raise
        output.seek(0)
        text = output.read().decode("utf-8", "replace").strip()
    return (text or f"the installer exited with code {code}") if code else ""


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _error_message(output: str, pins: PinnedPackages) -> str:
    """The error message for the output of a failed installer."""
    if _contains_any(output, DISK_FULL_ERRORS):
        return (
            f"the disk is full; {pins.title} takes {pins.disk_mb} MB. Free some space and try again"
        )
    end = "\n".join(f"  {line}" for line in output.splitlines()[-SHOWN_OUTPUT_LINES:])
    if _contains_any(output, NETWORK_ERRORS):
        return (
            "the package index cannot be reached. Check the network; if you use a proxy or a "
            f"mirror, configure it for uv and pip. Installer output:\n{end}"
        )
    return f"{pins.title} could not be downloaded. Installer output:\n{end}"


def _contains_any(output: str, texts: tuple[str, ...]) -> bool:
    return any(text in output.lower() for text in texts)


STAMP_NAME: Final = "installed.lock"  # a copy of the lock file, written last


class Library(NamedTuple):
    """An optional library: its purpose, import name and lock file."""

    name: str
    label: str
    imported: str
    lock: Path
    download_mb: int
    disk_mb: int

    @property
    def folder(self) -> Path:
        """The folder where it is installed."""
        return hermes_home() / "libraries" / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether exactly the pinned packages are installed."""
        try:
            return (self.folder / STAMP_NAME).read_bytes() == self.lock.read_bytes()
        except OSError:
            return False

    def is_usable(self) -> bool:
        """Whether it can be imported; its folder is added to the import path if needed."""
        if importlib.util.find_spec(self.imported) is not None:
            return True
        folder = str(self.folder)
        if self.is_fetched and folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()
        return importlib.util.find_spec(self.imported) is not None

    def fetch(self, progress: Progress) -> bool:
        """Install it if it is missing; whether it was installed."""
        with folder_locked(private_folder(self.folder.parent)):
            if self.is_usable():
                return False
            title = f"the library for {self.label}"
            pins = PinnedPackages(self.lock, title, self.download_mb, self.disk_mb)
            with tempfile.TemporaryDirectory(prefix=".", dir=self.folder.parent) as work:
                new_folder = Path(work) / self.name
                try:
                    install(pins, new_folder, progress)
                finally:
                    progress("")
                shutil.copyfile(pins.lock, new_folder / STAMP_NAME)
                if self.folder.exists():
                    self.folder.rename(Path(work) / "old")
                new_folder.rename(self.folder)
        return self.is_usable()
