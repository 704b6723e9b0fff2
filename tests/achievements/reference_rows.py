"""Rows of the reference implementation: counted rows, tool calls and outcomes."""

from __future__ import annotations

import functools
import json
import posixpath
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from achievements.reference_shell import shell_labels
from hermes_achievements.classification import model_names, shell_commands, tool_kinds
from hermes_achievements.scan.history import ScannedMessage, ScannedSession
from hermes_core.history_rows import AGENT_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

# What the text of a row means is found once, although each metric asks for it.
CACHED_TEXTS = 20_000
TRACE = "Traceback (most recent call last)"
EXIT_LINE = re.compile(
    r"\W{0,3}(process )?exit(ed)?( with)?( code| status)?[ :=]+(?P<code>-?\d{1,5})\W{0,3}",
    re.IGNORECASE | re.ASCII,
)
CLEAN = (
    "cli_close new_session session_reset tui_close agent_close branched compression "
    "cron_complete resumed_other session_switch user_exit idle daily"
)
NOTABLE = {
    "01-01": "new year", "02-14": "valentine's day", "02-29": "leap day", "03-14": "pi day",
    "04-01": "april fools' day", "05-04": "star wars day", "10-31": "halloween",
    "12-24": "christmas eve", "12-31": "new year's eve",
}  # fmt: skip


class ReferenceHistory(NamedTuple):
    """All sessions and messages of a history."""

    sessions: list[ScannedSession]
    messages: dict[str, list[ScannedMessage]]


class ReferenceSession(NamedTuple):
    """The counted rows of a session, in chronological order."""

    row: ScannedSession
    rows: list[ScannedMessage]
    zone: tzinfo


class Call(NamedTuple):
    """A tool call as it was stored."""

    row: ScannedMessage
    tool: str
    mark: str
    arguments: dict[str, Any]


class Result(NamedTuple):
    """A tool result and its call, if it is known."""

    row: ScannedMessage
    tool: str
    call: Call | None
    has_failed: bool
    exit_code: int
    has_trace: bool


Events = list[tuple[ScannedMessage, int]]


# --- counted rows ---------------------------------------------------------------------


def reference_sessions(history: ReferenceHistory, zone: tzinfo) -> Iterator[ReferenceSession]:
    for session in history.sessions:
        stored = sorted(history.messages.get(session.id, []), key=lambda row: row.id)
        rows = [row for row in stored if is_counted(row) and not row.is_copy]
        is_child = session.kind in ("branch", "continuation")
        if is_child and not any(row.is_copy for row in stored):
            rows = without_copies(session, rows, history.messages.get(session.parent_id or "", []))
        yield ReferenceSession(session, sorted(rows, key=lambda row: (row.at, row.id)), zone)


def is_counted(row: ScannedMessage) -> bool:
    return row.role in ("tool", "assistant") or (row.role == "user" and not row.is_observed)


def without_copies(
    session: ScannedSession, rows: list[ScannedMessage], parents: list[ScannedMessage]
) -> list[ScannedMessage]:
    """Copies are in one run, in the order of the parent, after at most three other rows."""
    before = [
        fingerprint(row) for row in sorted(parents, key=lambda row: row.id) if is_counted(row)
    ]
    skipped = 0 if session.kind == "branch" else 3
    for start in range(min(skipped, len(rows)) + 1):
        left = list(before)
        end = start
        while end < len(rows) and rows[end].at <= session.started_at + 10:
            if fingerprint(rows[end]) not in left:
                break
            left = left[left.index(fingerprint(rows[end])) + 1 :]
            end += 1
        if end > start:
            return rows[:start] + rows[end:]
    return rows


def fingerprint(row: ScannedMessage) -> tuple[str, str, bytes, bytes]:
    mark = row.call_id or "" if row.role == "tool" else ""
    return (row.role, mark, (row.tool_calls or b"")[:200], (row.content or b"")[:200])


# --- content of rows -----------------------------------------------------------------------


def parse_json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def operation_of(tool: str) -> str:
    for name in (tool, tool.lower()):
        if name in tool_kinds.TOOL_ACTIONS:
            return tool_kinds.TOOL_ACTIONS[name]
    if tool.lower().startswith("browser_"):
        return tool_kinds.BROWSER
    return tool_kinds.MCP if re.match("mcp[_-]", tool.lower()) else tool_kinds.OTHER


def calls_of(row: ScannedMessage) -> list[Call]:
    if row.role != "assistant" or row.tool_calls is None:
        return []
    return [Call(row, *fields) for fields in parsed_calls(row.tool_calls)]


@functools.lru_cache(maxsize=CACHED_TEXTS)
def parsed_calls(text: bytes) -> list[tuple[str, str, dict[str, Any]]]:
    """The name, the mark and the arguments of each call."""
    result = parse_json(text)
    calls = []
    for item in result if isinstance(result, list) else []:
        if not isinstance(item, dict):
            continue
        function = item["function"] if isinstance(item.get("function"), dict) else item
        name, mark = function.get("name"), item.get("id") or item.get("call_id")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = parse_json(arguments)
        if isinstance(name, str) and name:
            mark = mark if isinstance(mark, str) else ""
            arguments = arguments if isinstance(arguments, dict) else {}
            calls.append((name[:64], mark, arguments))
    return calls


def calls(session: ReferenceSession, *operations: str) -> list[Call]:
    result = [call for row in session.rows for call in calls_of(row)]
    return [call for call in result if not operations or operation_of(call.tool) in operations]


def labels(call: Call) -> list[str]:
    """The commands of a shell call."""
    return [label.rstrip("~?") for label in raw_labels(call)]


def raw_labels(call: Call) -> list[str]:
    """The commands of a shell call with exit-code marks `~` and `?`."""
    command = call.arguments.get("command") or call.arguments.get("cmd") or ""
    result = shell_labels(command) if isinstance(command, str) else []
    return [*result, "&"] if call.arguments.get("background") is True else result


def files(call: Call) -> list[tuple[str, str]]:
    """The files of a call, as extension and path."""
    named: list[Any] = []
    for key in tool_kinds.PATH_KEYS:
        value = call.arguments.get(key)
        named += [value] if isinstance(value, str) else []
        for item in value[:50] if isinstance(value, list) else []:
            path = item.get("path") or item.get("file_path") if isinstance(item, dict) else item
            named.append(path if isinstance(path, str) else "")
    patch = call.arguments.get("patch") or call.arguments.get("diff")
    if not named and isinstance(patch, str):
        named = patched_files(patch)[:50]
    return [file for path in named if (file := file_of(path))]


def patched_files(patch: str) -> list[str]:
    result = []
    for line in patch.split("\n"):
        for start in ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ "):
            if line.startswith(start):
                path = line.removeprefix(start).split("\t")[0]
                result.append(path.removeprefix("b/") if start == "+++ " else path)
    return [path for path in result if path and not path[0].isspace()]


def file_of(path: str) -> tuple[str, str] | None:
    path = path.strip().replace("\\", "/")
    if not path or path.endswith("/") or "\n" in path:
        return None
    path = posixpath.normpath(path)
    if path in (".", "..", "/dev/null"):
        return None
    name = path.split("/")[-1].lower()
    before, dot, ending = name.rpartition(".")
    is_extension = before and dot and re.fullmatch("[a-z0-9_+-]{1,12}", ending)
    kind = tool_kinds.EXTENSION_ALIASES.get(ending, ending) if is_extension else ""
    return tool_kinds.NAMED_FILE_KINDS.get(name, kind), path


# --- outcomes of calls ----------------------------------------------------------------------


def results(session: ReferenceSession) -> list[Result]:
    result = []
    for position, row in enumerate(session.rows):
        if row.role == "tool":
            call = answered_call(session.rows[:position], row)
            name = (row.tool_name or "")[:64]
            tool = call.tool if call else name
            failed, code, trace = outcome(row.content or b"", operation_of(name or tool))
            if call and code == 1 and not trace and is_question(call):
                failed, code = False, 0
            result.append(Result(row, tool, call, failed, code, trace))
    return result


def is_question(call: Call) -> bool:
    """Whether exit code 1 of the last command is not a failure."""
    return operation_of(call.tool) == tool_kinds.SHELL and any(
        label in shell_commands.ANSWER_PROGRAMS for label in raw_labels(call)[-1:]
    )


def answered_call(before: list[ScannedMessage], row: ScannedMessage) -> Call | None:
    for earlier in reversed(before):
        for call in reversed(calls_of(earlier)) if row.call_id else []:
            if call.mark == row.call_id:
                return call
    return None


@functools.lru_cache(maxsize=CACHED_TEXTS)
def outcome(content: bytes, operation: str) -> tuple[bool, int, bool]:
    """Whether the call failed, its exit code, and whether it has a traceback."""
    content = content.lstrip()
    result = parse_json(content) if content.startswith(b"{") else None
    is_running = operation in tool_kinds.RUNNING_OPERATIONS
    if isinstance(result, dict):
        trace = is_running and shows_trace(result)
        code = exit_code(result)
        failed = is_error(result)
    else:
        trace = is_running and shows_trace(content.decode(errors="replace"))
        code = printed_code(content) if operation == tool_kinds.SHELL else None
        failed = False
    if code is None:
        return failed or trace, 0, trace
    return code != 0, shell_exit_code(code), trace


def is_error(result: dict[str, Any]) -> bool:
    status = result.get("status")
    bad = ("error", "failed", "failure", "timeout", "timed_out")
    is_bad = isinstance(status, str) and status.lower() in bad
    return bool(result.get("error")) or result.get("success") is False or is_bad


def exit_code(result: dict[str, Any]) -> int | None:
    keys = ("exit_code", "returncode", "return_code", "exitCode", "exit_status")
    codes = [result[key] for key in keys if type(result.get(key)) is int]
    return codes[0] if codes else None


def shell_exit_code(code: int) -> int:
    if -128 < code < 0:
        code = 128 - code
    return code % 256 or (1 if code else 0)


def shows_trace(value: Any) -> bool:
    if isinstance(value, str):
        return any(line.startswith(TRACE) for line in value.split("\n"))
    values = list(value.values()) if isinstance(value, dict) else value
    return isinstance(values, list) and any(shows_trace(item) for item in values)


def printed_code(content: bytes) -> int | None:
    """The exit code on a line of its own, within 160 bytes of either end."""
    start = 0
    for line in content.split(b"\n"):
        end = start + len(line)
        is_near = end < 160 or start - 1 >= len(content) - 160 or len(content) <= 320
        match = EXIT_LINE.fullmatch(line.decode("latin-1"))
        if is_near and match:
            return int(match["code"])
        start = end + 1
    return None


def commands_of(result: Result) -> list[str]:
    call = result.call
    return raw_labels(call) if call and operation_of(call.tool) == tool_kinds.SHELL else []


def is_known_success(result: Result, labels_to_match: frozenset[str]) -> bool:
    """Whether one of these commands is known to have succeeded."""
    successful = {label.rstrip("~") for label in commands_of(result)}
    return not result.has_failed and bool(successful & labels_to_match)


def is_known_failure(result: Result, labels_to_match: frozenset[str]) -> bool:
    """Whether one of these commands is known to have failed."""
    return result.has_failed and bool({*commands_of(result)} & labels_to_match)


# --- sessions ----------------------------------------------------------------------


def is_conversation(session: ReferenceSession) -> bool:
    return session.row.kind in ("conversation", "branch")


def has_human_user(session: ReferenceSession) -> bool:
    if session.row.source == "webhook":
        return False
    if session.row.kind == "continuation":
        return session.row.source not in ("cron", "cronjob", "schedule")
    return session.row.kind in ("conversation", "branch")


def user_messages(session: ReferenceSession) -> list[ScannedMessage]:
    return [row for row in session.rows if row.role == "user"] if has_human_user(session) else []


def replies(session: ReferenceSession) -> list[ScannedMessage]:
    return [row for row in session.rows if row.role == "assistant" and not calls_of(row)]


def first_user_message(session: ReferenceSession) -> list[ScannedMessage]:
    """The first user message of a conversation, as a list."""
    return user_messages(session)[:1] if is_conversation(session) else []


def last(session: ReferenceSession) -> list[ScannedMessage]:
    return session.rows[-1:]


def gaps(session: ReferenceSession) -> list[tuple[ScannedMessage, float]]:
    return [
        (row, row.at - session.rows[position].at) for position, row in enumerate(session.rows[1:])
    ]


def local(session: ReferenceSession, row: ScannedMessage) -> datetime:
    return moment(row.at, session.zone)


def moment(at: float, zone: tzinfo) -> datetime:
    first = datetime(1970, 1, 2, tzinfo=UTC).timestamp()
    final = datetime(9998, 1, 1, tzinfo=UTC).timestamp()
    return datetime.fromtimestamp(min(max(at, first), final), zone)


def model(session: ReferenceSession) -> str:
    name = session.row.model.strip().lower().split("/")[-1].replace("_", "-")
    if name in ("", "none", "null", "unknown"):
        return ""
    while True:
        match = model_names.MODEL_SUFFIX.search(name)
        if match is None or match.start() == 0:
            break
        name = name[: match.start()]
    return re.sub(r"(?<=\d)-(?=\d{1,2}(-|$))", ".", name)


def maker(session: ReferenceSession) -> str:
    name = model(session)
    for family, made_by in model_names.MODEL_FAMILIES:
        rest = name.removeprefix(family)
        if rest != name and not rest[:1].isalpha():
            return made_by
    parts = session.row.model.strip().lower().split("/")
    if not name or len(parts) > 1:
        return parts[-2] if name else ""
    return re.split(r"[-:.\d]", name)[0] or name


def agent(session: ReferenceSession) -> str:
    return session.row.source if session.row.source in AGENT_SOURCES else "hermes"


def agent_in_project(session: ReferenceSession) -> str:
    return f"{session.row.project}:{agent(session)}"


def is_place(session: ReferenceSession) -> bool:
    return session.row.source not in {"", *AGENT_SOURCES}
