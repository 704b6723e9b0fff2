"""Make or refresh `.synapse`: a real Matrix server for the tests of that platform.

    python3 tools/set_up_synapse.py

It is not part of Hermes and has an environment of its own. The stamp (a copy of the lock file
that was installed) is written last; while it is that file, there is nothing to do. Standard
library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".synapse"
LOCK_FILE = ROOT / "requirements" / "synapse.lock"
STAMP = FOLDER / "installed-synapse.lock"
UV = ROOT / ".venv" / "bin" / "uv"
# uv trusts the certificates of this machine, as pip does; the name differs by release.
ENVIRONMENT = {**os.environ, "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}


class SetUpError(Exception):
    """Setup cannot continue, for the reason in the text."""


def is_current() -> bool:
    """Whether exactly these pins are installed."""
    try:
        python = FOLDER / "bin" / "python"
        return python.exists() and STAMP.read_bytes() == LOCK_FILE.read_bytes()
    except FileNotFoundError:
        return False


def set_up() -> None:
    """Bring `.synapse` to its lock file; do nothing when it is there."""
    with Path(__file__).open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # another set-up of this folder goes first
        if is_current():
            return
        shutil.rmtree(FOLDER, ignore_errors=True)
        print_message("Installing Synapse (Matrix server for tests)")
        base = str(Path(sys.executable).resolve())
        run([base, "-m", "venv", "--without-pip", str(FOLDER)])
        install = [str(UV), "pip", "install", "--quiet", "--python", str(FOLDER / "bin" / "python")]
        run([*install, "--require-hashes", "--no-deps", "-r", str(LOCK_FILE)])
        half = STAMP.with_suffix(".half")
        half.write_bytes(LOCK_FILE.read_bytes())
        half.replace(STAMP)


def run(command: list[str]) -> None:
    """Run one step; its output is shown only when it fails."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        env=ENVIRONMENT,
    )
    if done.returncode:
        raise SetUpError(done.stdout.decode("utf-8", "replace").strip())


def print_message(text: str) -> None:
    """A line for the person waiting."""
    sys.stderr.write(f"hermes: {text}\n")
    sys.stderr.flush()


def main() -> int:
    """Set it up."""
    try:
        set_up()
    except (SetUpError, OSError) as error:
        print_message(f"Synapse: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
