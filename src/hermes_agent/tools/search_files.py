"""`search_files`: ripgrep where it is installed, Python where it is not."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_agent.tools import files
from hermes_agent.tools.arguments import (
    ToolError,
    choice,
    number,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    text,
)
from hermes_agent.tools.base import Tool, success

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.tools.base import ToolContext
    from hermes_agent.turn_control import Cancel

MAX_SEARCH_SECONDS = 60.0
LINE_CHARACTERS = 300
MAX_BYTES = 10_000_000
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})
RIPGREP_NO_MATCH = 1  # exit code of ripgrep


class FileQuery(NamedTuple):
    """What to look for, and where."""

    pattern: str
    path: Path
    glob: str
    is_content: bool
    cancel: Cancel
    deadline: float

    @property
    def is_over(self) -> bool:
        """Whether there is no more time."""
        return self.cancel.is_requested or time.monotonic() > self.deadline


def search_tool() -> Tool:
    """The tool."""
    return Tool(
        "search_files",
        "Search file contents by regex (mode content) or file names by glob (mode files).",
        schema(
            "pattern",
            pattern=parameter("string"),
            path=parameter("string"),
            glob=parameter("string", "only these files"),
            mode=parameter("string", enum=["content", "files"]),
            limit=parameter("integer", "default 50"),
        ),
        reporting_errors(_search),
    )


def _search(arguments: dict[str, Any], context: ToolContext) -> str:
    wish = FileQuery(
        text(arguments, "pattern"),
        resolve_path(text(arguments, "path", "."), context.cwd),
        text(arguments, "glob", ""),
        choice(arguments, "mode", ("content", "files")) == "content",
        context.cancel,
        time.monotonic() + MAX_SEARCH_SECONDS,
    )
    limit = number(arguments, "limit", 50, 1, 500)
    if not wish.path.exists():
        raise ToolError(f"{wish.path} does not exist.")
    program = shutil.which("rg")
    lines = _by_ripgrep(program, wish) if program else _by_python(wish)
    results = [_short(line, context.cwd) for line in itertools.islice(lines, limit + 1)]
    lines.close()  # type: ignore[attr-defined]
    facts: dict[str, Any] = {"matches": results[:limit], "count": min(len(results), limit)}
    if len(results) > limit:
        facts["more"] = True
    if wish.is_over:
        facts["incomplete"] = "The search was stopped before it finished."
    return success(**facts)


def _short(line: str, cwd: Path) -> str:
    line = files.displayable_text(line).removeprefix(f"{cwd}/")
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]} […]"


def _by_ripgrep(program: str, wish: FileQuery) -> Iterator[str]:
    options = ["--color=never", "--no-messages", "--no-config", "--sort=path"]
    if wish.glob:
        options += ["--glob", wish.glob]
    if wish.is_content:
        options += ["--line-number", "--no-heading", "--with-filename", "--max-columns=1000"]
        options += ["--max-columns-preview", "-e", wish.pattern]
    else:
        options += ["--files", "--glob", wish.pattern]
    process = subprocess.Popen(
        [program, *options, "--", str(wish.path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        errors="surrogateescape",
    )
    forget = wish.cancel.on_request(process.kill)
    timer = threading.Timer(max(0.0, wish.deadline - time.monotonic()), process.kill)
    timer.start()
    with process:
        try:
            yield from (line.rstrip("\r\n") for line in process.stdout or ())
            complaint = process.stderr.read() if process.stderr else ""
            if process.wait() > RIPGREP_NO_MATCH and complaint:
                raise ToolError(complaint.strip()[:500])
        finally:
            forget()
            timer.cancel()
            process.kill()


def _by_python(wish: FileQuery) -> Iterator[str]:
    if not wish.is_content:
        wanted = wish.pattern if wish.pattern.startswith("*") else f"*{wish.pattern}"
        for file in _files(wish):
            if fnmatch.fnmatch(file.name, wish.pattern) or fnmatch.fnmatch(str(file), wanted):
                yield str(file)
        return
    try:
        pattern = re.compile(wish.pattern)
    except re.error as error:
        raise ToolError(f"`pattern` is not a valid regular expression: {error}.") from None
    for file in _files(wish):
        if not wish.glob or _matches_glob(file, wish):
            yield from _matches(file, pattern, wish)


def _matches_glob(file: Path, wish: FileQuery) -> bool:
    if "/" not in wish.glob:
        return fnmatch.fnmatch(file.name, wish.glob)
    return fnmatch.fnmatch(str(file.relative_to(wish.path)), wish.glob.replace("**/", "*"))


def _files(wish: FileQuery) -> Iterator[Path]:
    """Files that are not hidden, in the order of their names."""
    if wish.path.is_file():
        yield wish.path
        return
    for folder, folders, names in os.walk(wish.path):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS
        )
        for name in sorted(names):
            if wish.is_over:
                return
            if not name.startswith("."):
                yield Path(folder, name)


def _matches(file: Path, pattern: re.Pattern[str], wish: FileQuery) -> Iterator[str]:
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return
        data = file.read_bytes()
    except OSError:
        return  # gone or not ours to read: as ripgrep does
    if b"\0" in data[: files.SNIFF_BYTES]:
        return
    for line_number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        if wish.is_over:
            return
        if pattern.search(line):
            yield f"{file}:{line_number}:{line}"
