"""The packages that a plugin requires, in a folder of its own.

The folder is put at the end of the import path when the plugin is loaded, so it never replaces
a package of Hermes. A requirement for another version than Hermes or another plugin has is
refused when the plugin is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.errors import FetchError
from hermes_core.package_installer import installers
from hermes_plugin_host.importer import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Iterable

REQUIREMENTS_FILE: Final = "requirements.txt"
SHOWN_OUTPUT_LINES: Final = 6
INSTALL_SECONDS: Final = 900


def read_requirements(folder: Path, declared: tuple[str, ...]) -> list[str]:
    """The requirements of a plugin: of its manifest, else of its requirements.txt."""
    path = folder / REQUIREMENTS_FILE
    if declared or not path.is_file():
        return list(declared)
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    wanted = [line for line in lines if line]
    for line in wanted:
        if line.startswith("-"):
            raise FetchError(f"{REQUIREMENTS_FILE}: the option {line!r} is not supported")
    return wanted


def install_requirements(requirements: Iterable[str], folder: Path, key: str = "") -> None:
    """Install packages into a folder; FetchError with the end of the installer's output.

    The versions that Hermes and other plugins than *key* use are preferred; `check_conflicts`
    explains the others.
    """
    output, wanted = "", list(requirements)
    with tempfile.TemporaryDirectory() as work:
        constraints = Path(work) / "constraints.txt"
        used = _versions(_other_folders(key)) | _versions(None)
        constraints.write_text("".join(f"{name}=={used[name]}\n" for name in used), "utf-8")
        for command in installers(Path(work)):
            for limits in (["--constraint", str(constraints)], []):
                arguments = ["--only-binary", ":all:", "--target", str(folder), *limits]
                output = _run([*command, *arguments, *wanted])
                if not output:
                    return
                shutil.rmtree(folder, ignore_errors=True)
    end = "\n".join(output.splitlines()[-SHOWN_OUTPUT_LINES:])
    raise FetchError(f"the requirements cannot be installed ({', '.join(wanted)}):\n{end}")


def _run(command: list[str]) -> str:
    """Run an installer; its output if it failed."""
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        return str(error)
    output = (process.stderr or process.stdout).strip()
    return (
        (output or f"the installer exited with code {process.returncode}")
        if process.returncode
        else ""
    )


def check_conflicts(key: str, folder: Path) -> None:
    """Refuse packages that Hermes or another plugin has in another version."""
    conflict = find_conflict(key, folder)
    if conflict:
        raise FetchError(
            f"{conflict}. Plugins run in the process of Hermes, which has one version of a package"
        )


def find_conflict(key: str, folder: Path) -> str:
    """The first package that Hermes or another plugin has in another version; else empty."""
    others = {
        "Hermes": None,
        **{f"the plugin {path.name}": [str(path)] for path in map(Path, _other_folders(key))},
    }
    for name, version in _versions([str(folder)]).items():
        for owner, where in others.items():
            known = _versions(where).get(name)
            if known is not None and known != version:
                return f"the plugin needs {name} {version}, and {owner} uses {known}"
    return ""


def _other_folders(key: str) -> list[str]:
    """The folders with the packages of other plugins."""
    root = paths.plugins_path() / LIBRARIES
    if not root.is_dir():
        return []
    return [str(path) for path in sorted(root.iterdir()) if path.is_dir() and path.name != key]


def _versions(where: list[str] | None) -> dict[str, str]:
    """The packages in folders, or those of this environment without the folders of plugins."""
    root = str(paths.plugins_path() / LIBRARIES)
    path = where if where is not None else [item for item in sys.path if not item.startswith(root)]
    found: dict[str, str] = {}
    for dist in metadata.distributions(path=path):
        name = re.sub(r"[-_.]+", "-", dist.name or "").lower()
        found.setdefault(name, dist.version)
    return found
