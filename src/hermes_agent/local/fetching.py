"""Fetching the built-in model: two pinned packages, with whatever installs packages here.

They go into a folder beside the target, are looked at, and take the target's place in one
step: the model is there completely or not at all.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.local.built_in import DISK_MB, DOWNLOAD_MB, LOCK, STAMP, TITLE, BuiltIn
from hermes_core.atomic_files import folder_locked
from hermes_core.errors import FetchError
from hermes_core.paths import private_folder

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


def fetch(target: BuiltIn, progress: Progress, *, is_anew: bool = False) -> bool:
    """Have the pinned model in place; whether anything had to be fetched."""
    models = private_folder(target.folder.parent)
    progress("waiting for another fetch")
    with folder_locked(models):
        if target.is_current and not target.flaw() and not is_anew:
            progress("")
            return False
        _remove_leftovers(target)
        _require_room(models)
        with _beside(target) as fresh:
            try:
                _install(fresh.folder, progress)
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
        raise FetchError(
            f"what was fetched cannot be used: {flaw}; run `hermes models get smollm2` again"
        )
    shutil.copyfile(LOCK, fresh.folder / STAMP)
    if target.folder.exists():
        target.folder.rename(fresh.folder.with_name("old"))
    fresh.folder.rename(target.folder)


def _install(folder: Path, progress: Progress) -> None:
    """Let the first installer that can do it do it."""
    said = ""
    with tempfile.TemporaryDirectory() as room:
        for command in _installers(Path(room)):
            pins = ["--target", str(folder), "--no-deps", "--require-hashes", "-r", str(LOCK)]
            said = _run([*command, "--only-binary", ":all:", *pins], progress)
            if not said:
                return
            shutil.rmtree(folder, ignore_errors=True)
            if _has(said, NO_ROOM):
                break
    raise FetchError(_reason(said))


def _installers(room: Path) -> Iterator[list[str]]:
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


def _run(command: list[str], progress: Progress) -> str:
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
                    progress(f"fetching {TITLE} ({DOWNLOAD_MB} MB) … {seconds:.0f} s")
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


def _reason(said: str) -> str:
    """What went wrong, and what to do about it."""
    if _has(said, NO_ROOM):
        return f"the disk is full; {TITLE} takes {DISK_MB} MB. Make room and try again"
    end = "\n".join(f"  {line}" for line in said.splitlines()[-LAST_LINES:])
    if _has(said, NO_NETWORK):
        return (
            "the package index cannot be reached. Is there a network? Behind a proxy or a "
            f"mirror, uv and pip have to know of it. What was said:\n{end}"
        )
    return f"{TITLE} could not be fetched. What the installer said:\n{end}"


def _has(said: str, words: tuple[str, ...]) -> bool:
    return any(word in said.lower() for word in words)
