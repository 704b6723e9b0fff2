"""`read_file` and `write_file`."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

from hermes_agent.tools import text_files
from hermes_agent.tools.arguments import (
    ToolError,
    answering,
    number,
    place,
    schema,
    takes,
    text,
)
from hermes_agent.tools.base import Tool, answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from hermes_agent.tools.base import ToolContext

DEFAULT_LINES = 500
MOST_LINES = 2_000
LINE_CHARACTERS = 2_000
PAGE_CHARACTERS = 60_000
COUNTED_BYTES = 50_000_000
LISTED_ENTRIES = 300


def file_tools() -> list[Tool]:
    """Reading and writing whole files."""
    return [
        Tool(
            "read_file",
            "Read a text file with line numbers, or list a folder.",
            schema(
                "path",
                path=takes("string"),
                offset=takes("integer", "first line, from 1"),
                limit=takes("integer", "lines, default 500"),
            ),
            answering(_read),
        ),
        Tool(
            "write_file",
            "Create a file or replace all of it; makes missing folders.",
            schema("path content", path=takes("string"), content=takes("string")),
            answering(_write),
            is_parallel=False,
        ),
    ]


def _read(arguments: dict[str, Any], context: ToolContext) -> str:
    path = place(text(arguments, "path"), context.cwd)
    if path.is_dir():
        return _list(path)
    size = text_files.must_be_file(path).st_size
    first = number(arguments, "offset", 1, 1, 2**53)
    limit = number(arguments, "limit", DEFAULT_LINES, 1, MOST_LINES)
    with path.open("rb") as file:
        start = file.read(text_files.SNIFFED_BYTES)
        text_files.must_be_text(path, start)
        file.seek(0)
        return _page(_lines(file, text_files.encoding_of(start)), first, limit, size)


def _lines(file: BinaryIO, encoding: str) -> Iterator[str]:
    """Its lines one by one, without their ends; memory stays small whatever the file holds."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    rest = ""
    while data := file.read(1 << 16):
        *whole, rest = (rest + decoder.decode(data)).split("\n")
        yield from whole
        if len(rest) > 1 << 20:
            rest = rest[: LINE_CHARACTERS + 1] + rest[-1:]
    rest += decoder.decode(b"", True)
    if rest:
        yield rest


def _page(lines: Iterator[str], first: int, limit: int, size: int) -> str:
    shown: list[str] = []
    total = length = 0
    more = False
    for total, line in enumerate(lines, 1):
        if total < first:
            continue
        if len(shown) >= limit or length > PAGE_CHARACTERS:
            more = True
            if size > COUNTED_BYTES:
                break
            continue
        shown.append(_numbered(total, line))
        length += len(shown[-1])
    if total and not shown:
        raise ToolError(f"The file has {total} lines only.")
    facts: dict[str, Any] = {"content": "\n".join(shown), "lines": total}
    if more:
        facts["next_offset"] = first + len(shown)
        if size > COUNTED_BYTES:
            facts["lines"] = f"more than {total}"
    return answer(**facts)


def _numbered(line_number: int, line: str) -> str:
    line = line.removesuffix("\r").removeprefix("\ufeff")
    if len(line) > LINE_CHARACTERS:
        line = f"{line[:LINE_CHARACTERS]} [… line cut …]"
    return f"{line_number}|{line}"


def _list(path: Path) -> str:
    entries = sorted(path.iterdir())
    names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    facts: dict[str, Any] = {
        "folder": str(path),
        "entries": [text_files.presentable(name) for name in names[:LISTED_ENTRIES]],
    }
    if len(names) > LISTED_ENTRIES:
        facts["not_listed"] = len(names) - LISTED_ENTRIES
    return answer(**facts)


def _write(arguments: dict[str, Any], context: ToolContext) -> str:
    path = place(text(arguments, "path"), context.cwd)
    data = text(arguments, "content").encode()
    is_new = text_files.write_whole(path, data)
    return answer(path=str(path), bytes=len(data), new=is_new)
