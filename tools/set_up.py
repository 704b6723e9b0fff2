"""Create or update `.venv`, for `./hermes` on its first start and for `make setup`.

    python3 tools/set_up.py runtime      the runtime dependencies
    python3 tools/set_up.py dev          the same, plus linters, type checker and tests

Standard library only: it runs before anything is installed.

* Two first starts at once: the second waits for a kernel lock on this file, which ends with
  its holder.
* An interrupted setup: the stamp (a copy of the installed lock file) is written last, and an
  environment without a stamp is deleted. The launcher compares stamp and lock file byte by
  byte, so an updated lock file installs again.
* Only wheels are installed: a package that is compiled here may link a library of the system
  (apsw an old SQLite). Where a package has no wheel and Hermes works without it, it is left out.
* The source is added with a `.pth` file instead of an editable install: no build backend is
  needed, new modules need no reinstall, and the relative path survives moving the checkout.
"""

from __future__ import annotations

import fcntl
import os
import platform
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
TOOLS = VENV / "tools"  # temporary environment of the installer
PYTHON = VENV / "bin" / "python"
SYSTEM_PROGRAMS = Path("/usr/bin")
# uv uses the system certificates, as pip does; the variable differs by release.
ENVIRONMENT = {**os.environ, "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}
STAMPS = {"runtime": ("runtime",), "dev": ("runtime", "dev")}
# Packages without a wheel for musl, by machine; docs/dependencies.md states what replaces them.
# Environment markers in a lock file cannot tell musl from glibc.
WITHOUT_MUSL_WHEEL = {
    "x86_64": frozenset({"google-re2"}),
    "aarch64": frozenset({"google-re2", "tree-sitter"}),
}


class SetUpError(Exception):
    """Setup failed; the text names the remedy."""


def lock_file(kind: str) -> Path:
    """The pinned packages of *kind*, with their hashes."""
    return ROOT / "requirements" / f"{kind}.lock"


def stamp(kind: str) -> Path:
    """The copy of the lock file that was installed."""
    return VENV / f"installed-{kind}.lock"


def is_current(kind: str) -> bool:
    """Whether exactly the pinned packages are installed."""
    try:
        return PYTHON.exists() and stamp(kind).read_bytes() == lock_file(kind).read_bytes()
    except FileNotFoundError:
        return False


def set_up(kind: str) -> None:
    """Update `.venv` to the lock file of *kind*, if needed."""
    start = time.monotonic()
    with setup_lock():
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
    print_message(f"Setup complete ({time.monotonic() - start:.0f} s).")


@contextmanager
def setup_lock() -> Iterator[None]:
    """Hold the setup lock; print a message while waiting for it."""
    with Path(__file__).open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print_message("Waiting for another setup of this checkout…")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    """Create an empty environment."""
    shutil.rmtree(VENV, ignore_errors=True)
    command = [str(base_python()), "-m", "venv", "--without-pip", str(VENV)]
    run("Creating a virtual environment", command)


def base_python() -> Path:
    """The interpreter of this process, or the same version of the system if that is faster.

    Version managers such as pyenv compile Python without its optimizations by default, which
    makes it about a fifth slower than the one of a distribution.
    """
    # The resolved path contains a version (python3.11): an environment on the link
    # `python3` breaks when the system updates the link.
    own = Path(sys.executable).resolve()
    if "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")):
        return own
    system = SYSTEM_PROGRAMS / "python{}.{}".format(*sys.version_info)
    is_usable = system.exists() and succeeds([str(system), "-c", "import venv"])
    return system if is_usable else own


def installers() -> Iterator[list[str]]:
    """Commands that install into `.venv`: uv if available, then pip.

    pip is tried even after uv: a mirror or a proxy is often configured for pip only.
    """
    own = VENV / "bin" / "uv"
    uv = shutil.which("uv") or (str(own) if own.exists() else None)
    if uv:
        yield uv_command(uv)
    python = python_with_pip()
    if not uv and python != sys.executable and fetch_uv(python):
        yield uv_command(str(TOOLS / "bin" / "uv"))
    print_message("uv is not available or failed; using pip")
    yield pip_command(python)


def python_with_pip() -> str:
    """An interpreter with pip: a temporary environment, or the system's."""
    try:
        run(
            "Creating a virtual environment for the installer",
            [sys.executable, "-m", "venv", str(TOOLS)],
        )
    except SetUpError as error:
        # Debian packages ensurepip separately; the pip of the system is sufficient.
        if succeeds([sys.executable, "-m", "pip", "--version"]):
            return sys.executable
        raise SetUpError(
            "Cannot create virtual environments: venv, pip and uv are all missing.\n"
            "Install one of them and start again, e.g. apt install python3-venv"
        ) from error
    return str(TOOLS / "bin" / "python")


def fetch_uv(python: str) -> bool:
    """Install the pinned uv with pip; return whether it succeeded."""
    pip = [python, "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes"]
    try:
        run("Downloading uv", [*pip, "--only-binary", ":all:", "-r", str(lock_file("installer"))])
    except SetUpError:
        return False
    return True


def uv_command(uv: str) -> list[str]:
    """The uv command that installs into `.venv`."""
    return [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]


def pip_command(python: str) -> list[str]:
    """The pip command that installs into `.venv`."""
    pip = [python, "-m", "pip", "--python", str(PYTHON), "--disable-pip-version-check"]
    return [*pip, "install", "--quiet", "--no-input"]


def left_out() -> frozenset[str]:
    """Packages that cannot be installed on this system."""
    variables = sysconfig.get_config_vars("SOABI", "HOST_GNU_TYPE")
    is_musl = any("musl" in str(value) for value in variables)
    return WITHOUT_MUSL_WHEEL.get(platform.machine(), frozenset()) if is_musl else frozenset()


def without(lock_text: str, names: frozenset[str]) -> str:
    """The text of a lock file without some packages; hashes follow on indented lines."""
    kept = []
    is_kept = True
    for line in lock_text.splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            is_kept = line.partition("==")[0] not in names
        if is_kept:
            kept.append(line)
    return "".join(kept)


def install(lock: Path) -> None:
    """Install the pinned packages, each checked against its hash."""
    text = without(lock.read_text("utf-8"), left_out())
    count = sum("==" in line for line in text.splitlines())
    installed = VENV / "to-install.lock"
    installed.write_text(text, "utf-8")
    pins = ["--only-binary", ":all:", "--require-hashes", "--no-deps", "-r", str(installed)]
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
    """Mark *kind* as installed, atomically."""
    half = stamp(kind).with_suffix(".half")
    half.write_bytes(lock_file(kind).read_bytes())
    half.replace(stamp(kind))


def succeeds(command: list[str]) -> bool:
    """Whether *command* runs and returns 0."""
    quiet = subprocess.DEVNULL
    return subprocess.run(command, stdout=quiet, stderr=quiet, check=False).returncode == 0


def run(task: str, command: list[str]) -> None:
    """Run a step with progress; its output is shown only if it fails."""
    with tempfile.TemporaryFile() as output, progress(task):
        done = subprocess.run(command, stdout=output, stderr=output, check=False, env=ENVIRONMENT)
        output.seek(0)
        text = output.read().decode("utf-8", "replace").strip()
    if done.returncode:
        raise SetUpError(f"{task} failed:\n{text}")


@contextmanager
def progress(task: str) -> Iterator[None]:
    """Print the task; on a terminal with the elapsed seconds."""
    if not sys.stderr.isatty():
        print_message(f"{task}…")
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
    """Update the line until the task is done."""
    start = time.monotonic()
    while not done.wait(0.1):
        sys.stderr.write(f"\r\033[Khermes: {task}… {time.monotonic() - start:.0f} s")
        sys.stderr.flush()
    sys.stderr.write("\r\033[K")
    sys.stderr.flush()


def print_message(text: str) -> None:
    """Print a message."""
    sys.stderr.write(f"hermes: {text}\n")
    sys.stderr.flush()


def main() -> int:
    """Set up the kind that the first argument names."""
    kind = sys.argv[1] if len(sys.argv) == 2 else ""
    if kind not in STAMPS:
        print_message("usage: set_up.py runtime|dev")
        return 2
    try:
        set_up(kind)
    except SetUpError as error:
        print_message(f"Setup failed. {error}")
        return 1
    except OSError as error:
        print_message(f"Setup failed. Cannot write to {ROOT}: {error}")
        return 1
    except KeyboardInterrupt:
        print_message("Setup interrupted; the next start repeats it.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
