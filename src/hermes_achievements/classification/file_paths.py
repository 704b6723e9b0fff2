"""Files named by a tool's arguments: any platform's paths, any extension."""

from __future__ import annotations

import posixpath
import re
from typing import Any, Final
from zlib import crc32

KEYS: Final = ("path", "file_path", "filename", "file", "filepath", "target_file", "paths", "files")
EXTENSION: Final = re.compile(r"\.([A-Za-z0-9_+-]{1,12})$")
# A patch in the unified or the `*** Update File:` form names its files itself.
PATCHED: Final = re.compile(
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S[^\t\n]*)", re.MULTILINE
)
MOST_FILES: Final = 50
SAME: Final = {"yml": "yaml", "htm": "html", "jpeg": "jpg", "tiff": "tif", "mjs": "js", "cjs": "js"}
NAMED: Final = {"dockerfile": "docker", "makefile": "make", "cmakelists.txt": "cmake"}


def files_of(arguments: dict[str, Any]) -> list[str]:
    """The files that a call names, each as `extension:hash of its path`."""
    found: list[str] = []
    for key in KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            found.extend(_name(one) for one in value[:MOST_FILES])
    if not found:
        patch = arguments.get("patch") or arguments.get("diff")
        if isinstance(patch, str):
            found = PATCHED.findall(patch)[:MOST_FILES]
    return [word for path in found if (word := file_word(path))]


def _name(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("path") or value.get("file_path")
    return value if isinstance(value, str) else ""


def file_word(path: str) -> str:
    """One file as `extension:hash`; the same file however its path is spelled."""
    plain = path.strip().replace("\\", "/")
    if not plain or plain.endswith("/") or "\n" in plain:
        return ""
    normal = posixpath.normpath(plain)
    if normal in (".", "..", "/dev/null"):
        return ""
    return f"{extension(normal)}:{crc32(normal.encode(errors='replace')):x}"


def extension(path: str) -> str:
    """What kind of file it is, by its ending; empty when it has none."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in NAMED:
        return NAMED[name]
    match = EXTENSION.search(name)
    if match is None or match.start() == 0:
        return ""
    ending = match.group(1)
    return SAME.get(ending, ending)
