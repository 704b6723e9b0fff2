"""What each tool does. Names are matched whole: `dispatch_job` is no `patch`."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

SHELL: Final = "shell"
PROCESS: Final = "process"
READ: Final = "read"
WRITE: Final = "write"
EDIT: Final = "edit"
FIND: Final = "find"
WEB_SEARCH: Final = "web_search"
PAGE: Final = "page"
BROWSER: Final = "browser"
DELEGATE: Final = "delegate"
SCHEDULE: Final = "schedule"
MEMORY: Final = "memory"
RECALL: Final = "recall"
DRAW: Final = "draw"
SEE: Final = "see"
SPEAK: Final = "speak"
CODE: Final = "code"
SKILL: Final = "skill"
SKILL_WRITE: Final = "skill_write"
PLAN: Final = "plan"
ASK: Final = "ask"
MCP: Final = "mcp"
OTHER: Final = "other"

TOOL_ACTIONS: Final = {
    "terminal": SHELL,
    "shell": SHELL,
    "bash": SHELL,
    "run_command": SHELL,
    "execute_command": SHELL,
    "run_shell_command": SHELL,
    "process": PROCESS,
    "read_file": READ,
    "read": READ,
    "view": READ,
    "write_file": WRITE,
    "write": WRITE,
    "create_file": WRITE,
    "patch": EDIT,
    "edit": EDIT,
    "edit_file": EDIT,
    "apply_patch": EDIT,
    "str_replace": EDIT,
    "str_replace_editor": EDIT,
    "multi_edit": EDIT,
    "search_files": FIND,
    "search": FIND,
    "grep": FIND,
    "glob": FIND,
    "web_search": WEB_SEARCH,
    "web_extract": PAGE,
    "web_fetch": PAGE,
    "fetch": PAGE,
    "delegate_task": DELEGATE,
    "task": DELEGATE,
    "cronjob": SCHEDULE,
    "memory": MEMORY,
    "session_search": RECALL,
    "image_generate": DRAW,
    "vision_analyze": SEE,
    "browser_vision": SEE,
    "text_to_speech": SPEAK,
    "execute_code": CODE,
    "skill_view": SKILL,
    "skill_manage": SKILL_WRITE,
    "todo": PLAN,
    "clarify": ASK,
    "ask_user": ASK,
}

FILE_OPERATIONS: Final = frozenset({READ, WRITE, EDIT, FIND})
# What these say about an action is one of their arguments.
ACTION_OPERATIONS: Final = frozenset({MEMORY, SCHEDULE, SKILL_WRITE, PROCESS})
# Only these run programs, so only their text can hold a traceback of their own.
RUNNING_OPERATIONS: Final = frozenset({SHELL, PROCESS, CODE, OTHER, MCP})


@lru_cache(maxsize=4096)
def does(tool: str) -> str:
    """What the tool called *tool* does."""
    name = tool.lower()
    if name in TOOL_ACTIONS:
        return TOOL_ACTIONS[name]
    if name.startswith("browser_"):
        return BROWSER
    return MCP if name.startswith(("mcp_", "mcp-")) else OTHER


KEYS: Final = ("path", "file_path", "filename", "file", "filepath", "target_file", "paths", "files")
EXTENSION: Final = re.compile(r"\.([A-Za-z0-9_+-]{1,12})$")
# A patch in the unified or the `*** Update File:` form names its files itself.
PATCHED: Final = re.compile(
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S[^\t\n]*)", re.MULTILINE
)
MAX_FILES: Final = 50
EXTENSION_ALIASES: Final = {
    "yml": "yaml",
    "htm": "html",
    "jpeg": "jpg",
    "tiff": "tif",
    "mjs": "js",
    "cjs": "js",
}
NAMED: Final = {"dockerfile": "docker", "makefile": "make", "cmakelists.txt": "cmake"}


def files_of(arguments: dict[str, Any]) -> list[str]:
    """The files that a call names, each as `extension:hash of its path`."""
    result: list[str] = []
    for key in KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            result.append(value)
        elif isinstance(value, list):
            result.extend(_name(item) for item in value[:MAX_FILES])
    if not result:
        patch = arguments.get("patch") or arguments.get("diff")
        if isinstance(patch, str):
            result = PATCHED.findall(patch)[:MAX_FILES]
    return [word for path in result if (word := file_word(path))]


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
    return EXTENSION_ALIASES.get(ending, ending)
