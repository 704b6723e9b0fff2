"""`search_files`: ripgrep where it is installed, RE2 where it is not.

Both search in linear time: no pattern can stall the program. Without both (musl), Python's own
expressions run in a process that is killed when it takes too long. ripgrep runs in the sandbox: a
symbolic link that changes during the search does not lead it to a hidden file.
"""

from __future__ import annotations

import itertools
import os
import re
import selectors
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.tools import process_groups, real_paths
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    choice,
    number,
    parameter,
    reporting_errors,
    resolve_path,
    schema,
    success,
    text,
)
from hermes_agent.tools.text_diff import split_lines
from hermes_agent.tools.text_encoding import SNIFF_BYTES, displayable_text
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from hermes_agent.sandbox.policy import SandboxPolicy
    from hermes_agent.tools.base import ToolContext
    from hermes_agent.tools.jobs import Jobs
    from hermes_agent.tools.terminal import LimitsCommands
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonData, JsonObject


# Python's regular expressions in a process that can be killed.
#
# `re` backtracks: some patterns never end, and a thread that runs one cannot be stopped. This is
# the replacement of RE2 on systems without a wheel of it (musl).

MAX_MATCH_SECONDS: Final = 5.0  # for the text of one file
POLL_SECONDS: Final = 0.05
# Messages are a length and as many bytes. The first answer is empty or the error of the pattern,
# each following one the numbers of the lines that match.
MATCH_PROGRAM: Final = """
import re, resource, struct, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
source, target = sys.stdin.buffer, sys.stdout.buffer
def read():
    head = source.read(8)
    return source.read(struct.unpack("<Q", head)[0]).decode() if head else None
def write(data):
    target.write(struct.pack("<Q", len(data)) + data)
    target.flush()
try:
    search = re.compile(read()).search
except (re.error, OverflowError, RecursionError, MemoryError) as error:
    write(str(error).encode() or b"too complex")
    sys.exit()
write(b"")
while (text := read()) is not None:
    lines = enumerate(text.replace("\\r\\n", "\\n").split("\\n"), 1)
    numbers = [number for number, line in lines if search(line)]
    write(struct.pack(f"<{len(numbers)}Q", *numbers))
"""


class BoundedPattern:
    """A pattern that another process matches; the process is killed when it takes too long."""

    def __init__(self, pattern: str, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", MATCH_PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        error = self._ask(pattern)
        if error:
            self.close()
            raise ToolError(
                f"`pattern` is not a valid regular expression (Python syntax): {error.decode()}."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def matching_lines(self, text: str) -> list[tuple[int, str]]:
        """Numbers and texts of the lines that match; none when the search was stopped."""
        data = self._ask(text)
        lines = split_lines(text)
        numbers = struct.unpack(f"<{len(data) // 8}Q", data)
        return [(number, lines[number - 1]) for number in numbers]

    def _ask(self, text: str) -> bytes:
        source, target = self._process.stdin, self._process.stdout
        data = text.encode()
        deadline = time.monotonic() + MAX_MATCH_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(target, selectors.EVENT_READ)  # type: ignore[arg-type]
            source.write(struct.pack("<Q", len(data)) + data)  # type: ignore[union-attr]
            while not selector.select(POLL_SECONDS):
                if self._is_over():
                    return b""
                if time.monotonic() > deadline:
                    self.close()
                    raise ToolError("`pattern` takes too long here. Use a simpler one.")
        size = struct.unpack("<Q", self._read(8))[0]
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._process.stdout.read(size - len(data))  # type: ignore[union-attr]
            if not part:
                raise ToolError("`pattern` needs too much memory. Use a simpler one.")
            data += part
        return data


MAX_SEARCH_SECONDS = 60.0
LINE_CHARACTERS = 300
MAX_BYTES = 10_000_000
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})
ONE_LINE = "`pattern` is compared with single lines and cannot contain a line end."
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
        """Whether the time is used up."""
        return self.cancel.is_requested or time.monotonic() > self.deadline


class FileMatch(NamedTuple):
    """A file that matches, and the line that is shown for it."""

    file: Path
    line: str


def search_tool(jobs: Jobs, limits: LimitsCommands) -> Tool:
    """The tool."""
    return Tool(
        "search_files",
        "Search lines by Rust regex, or file names by glob (mode files). Hidden and ignored files "
        "are skipped unless `path` names them.",
        schema(
            "pattern",
            pattern=parameter("string"),
            path=parameter("string"),
            glob=parameter("string"),
            mode=parameter("string", enum=["content", "files"]),
            limit=parameter("integer", "default 50"),
        ),
        reporting_errors(lambda arguments, context: _search(jobs, limits, arguments, context)),
        always_reads,
    )


def _search(jobs: Jobs, limits: LimitsCommands, arguments: JsonObject, context: ToolContext) -> str:
    query = FileQuery(
        text(arguments, "pattern"),
        limits.real_path(resolve_path(text(arguments, "path", "."), context.cwd), context),
        text(arguments, "glob", ""),
        choice(arguments, "mode", ("content", "files")) == "content",
        context.cancel,
        time.monotonic() + MAX_SEARCH_SECONDS,
    )
    query = query._replace(glob=_from_folder(query.glob, query.path))
    if not query.is_content:
        query = query._replace(pattern=_from_folder(query.pattern, query.path))
    limit = number(arguments, "limit", 50, 1, 500)
    if not query.path.exists():
        raise ToolError(f"{query.path} does not exist.")
    known: dict[Path, bool] = {}

    def is_visible(file: Path) -> bool:
        if file not in known:
            known[file] = not limits.is_hidden(file, context)
        return known[file]

    policy = _reading_policy(limits.policy("rg", context.cwd, context), query.path)
    program = system_program("rg")
    if program is None or not _can_list(policy, query.path):
        lines = _by_python(query, is_visible)
    else:
        lines = _by_ripgrep([program, *_ripgrep_options(query)], query, jobs, policy)
    globs = () if query.is_content else (query.glob, query.pattern)
    filters = [*(_glob_filter(query, glob) for glob in globs), is_visible]
    visible = (match.line for match in lines if all(keeps(match.file) for keeps in filters))
    results = [_short(line, context.cwd) for line in itertools.islice(visible, limit + 1)]
    lines.close()  # type: ignore[attr-defined]
    facts: dict[str, JsonData] = {"matches": results[:limit], "count": min(len(results), limit)}
    if len(results) > limit:
        facts["more"] = True
    if query.is_over:
        facts["incomplete"] = "The search was stopped before it finished."
    return success(**facts)


def _short(line: str, cwd: Path) -> str:
    line = displayable_text(line).removeprefix(f"{cwd}/")
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]} […]"


def _reading_policy(policy: SandboxPolicy | None, path: Path) -> SandboxPolicy | None:
    """The limits of a command that only reads a path."""
    if policy is None:
        return None
    return policy._replace(
        writable=(),
        reopened=(),
        visible=(*policy.visible, path),
        has_network=False,
        has_allowed_hosts=False,
        has_local_sockets=False,
        is_limited=True,
    )


def _from_folder(glob: str, folder: Path) -> str:
    """A glob that counts from the searched folder: without `./` and without the folder's path."""
    sign, wanted = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    inside = wanted.removeprefix(f"{folder}/")
    if inside != wanted:
        return f"{sign}/{inside}"
    inside = wanted.removeprefix("./")
    return glob if inside == wanted else f"{sign}/{inside}"


def _can_list(policy: SandboxPolicy | None, path: Path) -> bool:
    """Whether the sandbox can list a folder: Landlock's cannot if it contains a hidden one."""
    if policy is None or find_sandbox().name != "landlock":
        return True
    return not any(Path(os.path.realpath(hidden)).is_relative_to(path) for hidden in policy.hidden)


def _ripgrep_options(query: FileQuery) -> list[str]:
    options = ["--color=never", "--no-messages", "--no-config", "--sort=path"]
    if query.is_content:
        options += _glob_options(query.glob) if query.glob else []
        options += ["--crlf", "--line-number", "--no-heading", "--with-filename", "--null"]
        options += ["--max-columns=1000"]
        options += ["--max-columns-preview", "-e", query.pattern]
    else:
        options += [
            "--files",
            *(_glob_options(query.pattern) if _names_hidden(query.pattern) else []),
        ]
    return [*options, "--", str(query.path)]


def _glob_options(glob: str) -> list[str]:
    """ripgrep's options for a glob; one of plain names does not include ignored files."""
    if _names_hidden(glob):
        return ["--hidden", "--glob", glob]
    if "/" in glob or glob.startswith("!"):
        return ["--glob", glob]
    return [f"--type-add=named:{glob}", "--type=named"]


def _names_hidden(glob: str) -> bool:
    """Whether a glob names hidden files, so that these are not left out."""
    return glob.startswith(".") or "/." in glob


def _by_ripgrep(
    command: list[str], query: FileQuery, jobs: Jobs, policy: SandboxPolicy | None
) -> Iterator[FileMatch]:
    # ripgrep's globs count from its working folder.
    folder = query.path if query.path.is_dir() else Path("/")
    process = jobs.start_reader(command, folder, policy)

    def kill() -> None:
        process_groups.send(process.pid, signal.SIGKILL)

    forget = query.cancel.on_request(kill)
    timer = threading.Timer(max(0.0, query.deadline - time.monotonic()), kill)
    timer.start()
    with process:
        try:
            for line in process.stdout or ():
                yield _parsed(os.fsdecode(line).rstrip("\r\n"))
            complaint = process.stderr.read() if process.stderr else b""
            if b"--multiline" in complaint:
                raise ToolError(ONE_LINE)
            if process.wait() > RIPGREP_NO_MATCH and complaint:
                raise ToolError(complaint.decode(errors="replace").strip()[:500])
        finally:
            forget()
            timer.cancel()
            kill()


def _parsed(line: str) -> FileMatch:
    """A line of ripgrep: the file ends with NUL where more follows."""
    name, separator, rest = line.partition("\0")
    return FileMatch(Path(name), f"{name}:{rest}" if separator else name)


def _by_python(query: FileQuery, is_visible: Callable[[Path], bool]) -> Iterator[FileMatch]:
    named = filter(
        _glob_filter(query, query.glob if query.is_content else query.pattern), _files(query)
    )
    if not query.is_content:
        yield from (FileMatch(file, str(file)) for file in named)
        return
    with _compile(query) as pattern:
        for file in named:
            yield from _matches(file, pattern, query, is_visible)


def _compile(query: FileQuery) -> LinearPattern | BoundedPattern:
    try:
        import re2  # noqa: PLC0415 - only where ripgrep is missing
    except ModuleNotFoundError:
        return BoundedPattern(query.pattern, lambda: query.is_over)
    options = re2.Options()
    options.log_errors = False
    try:
        return LinearPattern(re2.compile(query.pattern, options=options), query)
    except re2.error as error:
        raise ToolError(
            f"`pattern` is not a valid regular expression (RE2 syntax): {_reason(error)}."
        ) from None


class LinearPattern:
    """A pattern of RE2."""

    def __init__(self, pattern: Any, query: FileQuery) -> None:
        self._search = pattern.search
        self._query = query

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing to release."""

    def matching_lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Numbers and texts of the lines that match."""
        for line_number, line in enumerate(split_lines(text), 1):
            if self._query.is_over:
                return
            if self._search(line):
                yield line_number, line


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _glob_filter(query: FileQuery, glob: str) -> Callable[[Path], bool]:
    """Whether files match a glob as ripgrep reads it; a file that is searched itself does.

    A glob with `/` counts from the searched folder, another one matches names in any folder.
    """
    is_negative = glob.startswith("!")
    wanted = glob.removeprefix("!")
    if not wanted or query.path.is_file():
        return lambda _file: True
    if "/" not in wanted:
        wanted = f"**/{wanted}"
    try:
        pattern = re.compile(_glob_expression(wanted.removeprefix("/")))
    except re.error as error:
        raise ToolError(f"{glob!r} is not a valid glob: {error}.") from None

    def matches(file: Path) -> bool:
        is_match = pattern.fullmatch(str(file.relative_to(query.path))) is not None
        return is_match is not is_negative

    return matches


GLOB_PARTS: Final = {
    "**/": r"(?:.*/)?", "/**": r"/.*", "**": r".*", "*": r"[^/]*", "?": r"[^/]",
    "{": "(?:", "}": ")", ",": "|",
}  # fmt: skip


def _glob_expression(glob: str) -> str:
    """A glob as a regular expression for a whole path."""
    pieces = re.findall(r"(?s)\*\*/|/\*\*$|\*\*|\[[!^]?\]?[^]/]*\]|\\.|.", glob)
    depth, parts = 0, []
    for piece in pieces:
        depth += (piece == "{") - (piece == "}")
        if piece == "," and not depth:
            parts.append(",")
        elif len(piece) > 1 and piece.startswith("["):
            is_negative, characters = piece[1] in "!^", piece[1:-1].lstrip("!^")
            escaped = re.sub(r"[\[\]\\^&|~]", r"\\\g<0>", characters)
            parts.append(f"[{'^' if is_negative else ''}{escaped}]")
        else:
            parts.append(GLOB_PARTS.get(piece) or re.escape(piece[-1]))
    return "(?s)" + "".join(parts)


def _files(query: FileQuery) -> Iterator[Path]:
    """Files that are not hidden, in the order of their names."""
    if query.path.is_file():
        yield query.path
        return
    for folder, folders, names in os.walk(query.path):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS
        )
        for name in sorted(names):
            if query.is_over:
                return
            if not name.startswith("."):
                yield Path(folder, name)


def _matches(
    file: Path,
    pattern: LinearPattern | BoundedPattern,
    query: FileQuery,
    is_visible: Callable[[Path], bool],
) -> Iterator[FileMatch]:
    data = _read_visible(file, is_visible)
    if b"\0" in data[:SNIFF_BYTES] or query.is_over:
        return
    for line_number, line in pattern.matching_lines(data.decode(errors="replace")):
        yield FileMatch(file, f"{file}:{line_number}:{line}")


def _read_visible(file: Path, is_visible: Callable[[Path], bool]) -> bytes:
    """The content of a file that may be searched, checked and opened by the same real path."""
    real = Path(os.path.realpath(file))
    if not is_visible(real):
        return b""
    try:
        with os.fdopen(real_paths.open_file(real), "rb") as opened:
            facts = os.fstat(opened.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
                return b""
            return opened.read()
    except OSError:
        return b""  # gone or not ours to read: as ripgrep does
