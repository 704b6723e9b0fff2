"""Make or refresh `.venv`: what `./hermes` runs on a first start and `make setup` runs for work.

    python3 tools/set_up.py runtime      what Hermes needs to run
    python3 tools/set_up.py dev          the same, plus linters, type checker and tests

Standard library only: it runs before anything is installed.

* Two first starts at once: the second waits for a lock of the kernel on this very file,
  which cannot outlive its holder.
* An interrupted set-up: the stamp (a copy of the lock file that was installed) is written
  last, and an environment without a stamp is thrown away. The launcher compares stamp and
  lock file byte by byte, so an updated lock file installs again.
* Our own code gets in through a `.pth` file rather than an editable install: no build
  backend to download, lock and run, nothing to repeat when a module is added, and its
  relative path survives moving the whole folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
TOOLS = VENV / "tools"  # the installer lives here while it works
PYTHON = VENV / "bin" / "python"
# uv trusts the certificates of this machine, as pip does; the name differs by release.
ENVIRONMENT = {**os.environ, "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}
STAMPS = {"runtime": ("runtime",), "dev": ("runtime", "dev")}


class SetUpError(Exception):
    """Set-up cannot go on; the text says what to do."""


def lock_file(kind: str) -> Path:
    """The pinned packages of *kind*, with their hashes."""
    return ROOT / "requirements" / f"{kind}.lock"


def stamp(kind: str) -> Path:
    """The copy of the lock file that was installed completely."""
    return VENV / f"installed-{kind}.lock"


def is_current(kind: str) -> bool:
    """Whether exactly these pins are installed."""
    try:
        return PYTHON.exists() and stamp(kind).read_bytes() == lock_file(kind).read_bytes()
    except FileNotFoundError:
        return False


def set_up(kind: str) -> None:
    """Bring `.venv` to the lock file of *kind*; do nothing when it is there."""
    with alone():
        if is_current(kind):
            return
        if not PYTHON.exists() or not any(stamp(each).exists() for each in STAMPS):
            make_venv()
        for each in STAMPS[kind]:
            if not is_current(each):
                stamp(each).unlink(missing_ok=True)
        install(lock_file(kind))
        shutil.rmtree(TOOLS, ignore_errors=True)
        point_to_source()
        for each in STAMPS[kind]:
            write_stamp(each)
    say("Setup complete.")


@contextmanager
def alone() -> Iterator[None]:
    """Hold the set-up lock; say so when somebody else has it."""
    with Path(__file__).open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another setup of this checkout…")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    """A new, empty environment on the interpreter behind this process."""
    shutil.rmtree(VENV, ignore_errors=True)
    # The resolved path names a version (python3.11): an environment on a link called
    # `python3` breaks when the system moves that link to the next release.
    base = Path(sys.executable).resolve()
    run("Creating a virtual environment", [str(base), "-m", "venv", "--without-pip", str(VENV)])


def installers() -> Iterator[list[str]]:
    """Commands that install into `.venv`, the best first: uv if it can be had, then pip.

    pip follows uv even where there is one: machines behind a mirror or a proxy often have
    it told to pip alone.
    """
    own = VENV / "bin" / "uv"
    uv = shutil.which("uv") or (str(own) if own.exists() else None)
    if uv:
        yield uv_command(uv)
    python = python_with_pip()
    if not uv and python != sys.executable and fetch_uv(python):
        yield uv_command(str(TOOLS / "bin" / "uv"))
    say("uv is not available or failed; using pip")
    yield pip_command(python)


def python_with_pip() -> str:
    """An interpreter that has pip: one of our own, or that of the system."""
    try:
        run(
            "Creating a virtual environment for the installer",
            [sys.executable, "-m", "venv", str(TOOLS)],
        )
    except SetUpError as error:
        # Debian splits ensurepip off; a pip of the system does as well.
        if succeeds([sys.executable, "-m", "pip", "--version"]):
            return sys.executable
        raise SetUpError(
            "Cannot create virtual environments: venv, pip and uv are all missing.\n"
            "Install one of them and start again, e.g. apt install python3-venv"
        ) from error
    return str(TOOLS / "bin" / "python")


def fetch_uv(python: str) -> bool:
    """Install the pinned uv beside its pip; whether that worked."""
    pip = [python, "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes"]
    try:
        run("Downloading uv", [*pip, "--only-binary", ":all:", "-r", str(lock_file("installer"))])
    except SetUpError:
        return False
    return True


def uv_command(uv: str) -> list[str]:
    """Install with uv."""
    return [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]


def pip_command(python: str) -> list[str]:
    """Install with the pip of *python*."""
    pip = [python, "-m", "pip", "--python", str(PYTHON), "--disable-pip-version-check"]
    return [*pip, "install", "--quiet", "--no-input"]


def install(lock: Path) -> None:
    """Install the pinned packages, each checked against its hash."""
    count = sum("==" in line for line in lock.read_text("utf-8").splitlines())
    pins = ["--require-hashes", "--no-deps", "-r", str(lock)]
    failure = None
    for installer in installers():
        try:
            return run(f"Installing {count} packages", [*installer, *pins])
        except SetUpError as error:
            failure = error
    raise failure or SetUpError("No installer available.")


def point_to_source() -> None:
    """Put `src` on the import path of the environment."""
    version = f"python{sysconfig.get_python_version()}"
    packages = VENV / "lib" / version / "site-packages"
    (packages / "hermes.pth").write_text("../../../../src\n", "utf-8")


def write_stamp(kind: str) -> None:
    """Say that *kind* is installed, in one step."""
    half = stamp(kind).with_suffix(".half")
    half.write_bytes(lock_file(kind).read_bytes())
    half.replace(stamp(kind))


def succeeds(command: list[str]) -> bool:
    """Whether *command* runs and returns 0."""
    quiet = subprocess.DEVNULL
    return subprocess.run(command, stdout=quiet, stderr=quiet, check=False).returncode == 0


def run(task: str, command: list[str]) -> None:
    """Run one step with its progress line; its output is shown only when it fails."""
    with tempfile.TemporaryFile() as output, progress(task):
        done = subprocess.run(command, stdout=output, stderr=output, check=False, env=ENVIRONMENT)
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()
    if done.returncode:
        raise SetUpError(f"{task} failed:\n{said}")


@contextmanager
def progress(task: str) -> Iterator[None]:
    """One plain line; on a terminal a line with the seconds counting up."""
    if not sys.stderr.isatty():
        say(f"{task}…")
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=tick, args=(task, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def tick(task: str, done: threading.Event) -> None:
    """Rewrite the line until the task is done."""
    start = time.monotonic()
    while not done.wait(0.1):
        sys.stderr.write(f"\r\033[Khermes: {task}… {time.monotonic() - start:.0f} s")
        sys.stderr.flush()
    sys.stderr.write("\r\033[K")
    sys.stderr.flush()


def say(text: str) -> None:
    """A line for the person waiting."""
    sys.stderr.write(f"hermes: {text}\n")
    sys.stderr.flush()


def main() -> int:
    """Set up what the first argument names."""
    kind = sys.argv[1] if len(sys.argv) == 2 else ""
    if kind not in STAMPS:
        say("usage: set_up.py runtime|dev")
        return 2
    try:
        set_up(kind)
    except SetUpError as error:
        say(f"Setup failed. {error}")
        return 1
    except OSError as error:
        say(f"Setup failed. Cannot write to {ROOT}: {error}")
        return 1
    except KeyboardInterrupt:
        say("Setup interrupted; the next start repeats it.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
