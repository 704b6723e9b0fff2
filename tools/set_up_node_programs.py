"""Make or refresh programs for Node.js that only tests use, such as `.acpx` and `.agents`.

    python3 tools/set_up_node_programs.py acpx      the headless client of `hermes acp`
    python3 tools/set_up_node_programs.py agents    the agents to which `hermes handoff` hands over

They are not part of Hermes. npm is found as for the dashboard's page. The stamp (a copy of the lock
file that was installed) is written last; while it is that file, there is nothing to do.
"""

from __future__ import annotations

import shutil
import sys

import set_up
import set_up_page

LOCK_NAME = "package-lock.json"
STAMP_NAME = "installed-package-lock.json"
TITLES = {"acpx": "acpx (client for tests)", "agents": "other agents (for tests)"}
MIN_NODE_VERSION = {"acpx": (20, 19), "agents": (22, 19)}


def install(name: str) -> None:
    """Bring the folder of *name* to its lock file; do nothing when it is there."""
    folder, sources = set_up.ROOT / f".{name}", set_up.ROOT / "requirements" / name
    stamp = folder / STAMP_NAME
    with set_up.setup_lock():
        lock = (sources / LOCK_NAME).read_bytes()
        if stamp.is_file() and stamp.read_bytes() == lock:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file_name in ("package.json", LOCK_NAME, ".npmrc"):
            shutil.copyfile(sources / file_name, folder / file_name)
        npm = find_npm(MIN_NODE_VERSION[name])
        set_up.ENVIRONMENT.update(set_up_page.environment(npm))
        # `npm ci` refuses the lock file where the registry lacks an optional package of another
        # system; this installs the locked versions, and compares their hashes, too.
        command = [*npm, "--prefix", str(folder), "install", "--no-save", "--ignore-scripts"]
        set_up.run(f"Installing {TITLES[name]}", command)
        stamp.write_bytes(lock)


def find_npm(version: tuple[int, int]) -> list[str]:
    """The npm of a Node.js that is new enough: on PATH, or in `.venv`."""
    node = shutil.which("node")
    if node is None or set_up_page.version_of(node) < version:
        if not set_up_page.OWN_NODE.exists():
            set_up_page.fetch_node()
        return set_up_page.own_npm()
    return set_up_page.find_npm()


def main() -> int:
    """Set it up."""
    if len(sys.argv) != 2 or sys.argv[1] not in TITLES:
        set_up.print_message(f"usage: set_up_node_programs.py {'|'.join(TITLES)}")
        return 2
    try:
        install(sys.argv[1])
    except (set_up.SetUpError, OSError) as error:
        set_up.print_message(f"{sys.argv[1]}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
