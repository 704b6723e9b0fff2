"""What each tool does. Names are matched whole: `dispatch_job` is no `patch`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

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

DOES: Final = {
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
    if name in DOES:
        return DOES[name]
    if name.startswith("browser_"):
        return BROWSER
    return MCP if name.startswith(("mcp_", "mcp-")) else OTHER
