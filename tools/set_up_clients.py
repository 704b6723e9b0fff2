"""Make or refresh `.clients`: client programs of the OpenAI API, for the tests of the gateway's.

    python3 tools/set_up_clients.py

They are not part of Hermes and have an environment of their own. The stamp (a copy of the lock
file that was installed) is written last; while it is that file, there is nothing to do.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from pathlib import Path

from set_up_synapse import ROOT, UV, SetUpError, print_message, run

FOLDER = ROOT / ".clients"
LOCK_FILE = ROOT / "requirements" / "clients.lock"
STAMP = FOLDER / "installed-clients.lock"


def set_up() -> None:
    """Bring `.clients` to its lock file; do nothing when it is there."""
    with Path(__file__).open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # another set-up of this folder goes first
        if STAMP.exists() and STAMP.read_bytes() == LOCK_FILE.read_bytes():
            return
        shutil.rmtree(FOLDER, ignore_errors=True)
        print_message("Installing clients of the API (for tests)")
        run([str(Path(sys.executable).resolve()), "-m", "venv", "--without-pip", str(FOLDER)])
        install = [str(UV), "pip", "install", "--quiet", "--compile-bytecode"]
        python = ["--python", str(FOLDER / "bin" / "python")]
        run([*install, *python, "--require-hashes", "--no-deps", "-r", str(LOCK_FILE)])
        half = STAMP.with_suffix(".half")
        half.write_bytes(LOCK_FILE.read_bytes())
        half.replace(STAMP)


def main() -> int:
    """Set it up."""
    try:
        set_up()
    except (SetUpError, OSError) as error:
        print_message(f"clients: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
