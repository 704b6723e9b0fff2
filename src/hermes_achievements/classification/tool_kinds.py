"""The operation of each tool, by its exact name."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

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
    "exec_command": SHELL,
    "exec": SHELL,
    "process": PROCESS,
    "read_file": READ,
    "read": READ,
    "view": READ,
    "write_file": WRITE,
    "write": WRITE,
    "create_file": WRITE,
    "create": WRITE,
    "patch": EDIT,
    "edit": EDIT,
    "edit_file": EDIT,
    "apply_patch": EDIT,
    "str_replace": EDIT,
    "str_replace_editor": EDIT,
    "multi_edit": EDIT,
    "multiedit": EDIT,
    "notebookedit": EDIT,
    "replace": EDIT,
    "search_files": FIND,
    "search": FIND,
    "grep": FIND,
    "glob": FIND,
    "ls": FIND,
    "list_directory": FIND,
    "search_file_content": FIND,
    "web_search": WEB_SEARCH,
    "websearch": WEB_SEARCH,
    "google_web_search": WEB_SEARCH,
    "web_extract": PAGE,
    "web_fetch": PAGE,
    "webfetch": PAGE,
    "fetch": PAGE,
    "delegate_task": DELEGATE,
    "task": DELEGATE,
    "agent": DELEGATE,
    "invoke_agent": DELEGATE,
    "spawn_agent": DELEGATE,
    "cronjob": SCHEDULE,
    "schedule": SCHEDULE,
    "memory": MEMORY,
    "session_search": RECALL,
    "session_read": RECALL,
    "image_generate": DRAW,
    "vision_analyze": SEE,
    "browser_vision": SEE,
    "text_to_speech": SPEAK,
    "execute_code": CODE,
    "skill_view": SKILL,
    "skill_manage": SKILL_WRITE,
    "todo": PLAN,
    "todowrite": PLAN,
    "write_todos": PLAN,
    "update_plan": PLAN,
    "clarify": ASK,
    "ask_user": ASK,
}

FILE_OPERATIONS: Final = frozenset({READ, WRITE, EDIT, FIND})
# Operations whose `action` argument is counted.
ACTION_OPERATIONS: Final = frozenset({MEMORY, SCHEDULE, SKILL_WRITE, PROCESS})
# Operations that run programs: only their output can contain a traceback of the call.
RUNNING_OPERATIONS: Final = frozenset({SHELL, PROCESS, CODE, OTHER, MCP})


@lru_cache(maxsize=4096)
def operation_of(tool: str) -> str:
    """The operation of a tool."""
    name = tool.lower()
    if name in TOOL_ACTIONS:
        return TOOL_ACTIONS[name]
    if name.startswith("browser_"):
        return BROWSER
    return MCP if name.startswith(("mcp_", "mcp-")) else OTHER


PATH_KEYS: Final = (
    "path",
    "file_path",
    "filename",
    "file",
    "filepath",
    "target_file",
    "paths",
    "files",
)
EXTENSION_PATTERN: Final = re.compile(r"\.([A-Za-z0-9_+-]{1,12})$")
# The file names in a unified diff or an `*** Update File:` patch.
PATCH_FILE_LINE: Final = re.compile(
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
NAMED_FILE_KINDS: Final = {"dockerfile": "docker", "makefile": "make", "cmakelists.txt": "cmake"}


def file_labels(arguments: JsonObject) -> list[str]:
    """The files of a call, each as `extension:hash of the path`."""
    result: list[str] = []
    for value in map(arguments.get, PATH_KEYS):
        if value is None:
            continue
        if isinstance(value, str):
            result.append(value)
        elif isinstance(value, list):
            result.extend(_name(item) for item in value[:MAX_FILES])
    if not result:
        patch = arguments.get("patch") or arguments.get("diff")
        if isinstance(patch, str):
            result = PATCH_FILE_LINE.findall(patch)[:MAX_FILES]
    return [label for path in result if (label := file_label(path))]


def _name(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("path") or value.get("file_path")
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=8192)
def file_label(path: str) -> str:
    """A file as `extension:hash` of its normalized path."""
    normalized = path.strip().replace("\\", "/")
    if not normalized or normalized.endswith("/") or "\n" in normalized:
        return ""
    # Most paths are normal; `normpath` is slow.
    is_normal = "//" not in normalized and "/." not in normalized and normalized[0] != "."
    normal = normalized if is_normal else posixpath.normpath(normalized)
    if normal in (".", "..", "/dev/null"):
        return ""
    return f"{extension(normal)}:{crc32(normal.encode(errors='replace')):x}"


def extension(path: str) -> str:
    """The kind of a file by its extension, or ''."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in NAMED_FILE_KINDS:
        return NAMED_FILE_KINDS[name]
    match = EXTENSION_PATTERN.search(name)
    if match is None or match.start() == 0:
        return ""
    ending = match.group(1)
    return EXTENSION_ALIASES.get(ending, ending)
