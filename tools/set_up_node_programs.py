"""Make or refresh `.acpx`: the headless client acpx, for the tests of `hermes acp`.

    python3 tools/set_up_acpx.py

It is not part of Hermes. npm is found as for the dashboard's page. The stamp (a copy of the lock
file that was installed) is written last; while it is that file, there is nothing to do.
"""

from __future__ import annotations

import shutil
import sys

import set_up
import set_up_page

FOLDER = set_up.ROOT / ".acpx"
SOURCES = set_up.ROOT / "requirements" / "acpx"
LOCK_NAME = "package-lock.json"
STAMP = FOLDER / "installed-package-lock.json"


def install() -> None:
    """Bring `.acpx` to its lock file; do nothing when it is there."""
    with set_up.setup_lock():
        lock = (SOURCES / LOCK_NAME).read_bytes()
        if STAMP.is_file() and STAMP.read_bytes() == lock:
            return
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        for name in ("package.json", LOCK_NAME, ".npmrc"):
            shutil.copyfile(SOURCES / name, FOLDER / name)
        npm = set_up_page.find_npm()
        set_up.ENVIRONMENT.update(set_up_page.environment(npm))
        # `npm ci` refuses the lock file where the registry lacks an optional package of another
        # system; this installs the locked versions, and compares their hashes, too.
        command = [*npm, "--prefix", str(FOLDER), "install", "--no-save", "--ignore-scripts"]
        set_up.run("Installing acpx (client for tests)", command)
        STAMP.write_bytes(lock)


def main() -> int:
    """Set it up."""
    try:
        install()
    except (set_up.SetUpError, OSError) as error:
        set_up.print_message(f"acpx: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
