"""Files mentioned in a prompt as `@path`: they are attached to the message.

A mention of a file that does not exist is plain text, as is a folder without a slash at its end:
code often contains words such as `@app`. Hidden files (credentials, the Hermes folder)
are not attached, as the tools of the agent do not read them either.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.tools import files, real_paths
from hermes_agent.tools.base import ToolError
from hermes_conversation import attachments
from hermes_conversation.attachments import AttachedText, Picture
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    IsHidden = Callable[[Path], bool]

MENTION: Final = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|([^\s"@]+))')
CLOSING_CHARACTERS: Final = ".,;:!?)]}'\"»”"
MAX_MENTIONS: Final = 20
MAX_FILE_CHARACTERS: Final = 40_000
MAX_FOLDER_ENTRIES: Final = 200
IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


class MentionResult(NamedTuple):
    """What the mentions of a prompt attach, and what has to be said about them."""

    texts: tuple[AttachedText, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notices: tuple[str, ...] = ()


class MentionReader:
    """Reads the mentioned files of one prompt, at most *characters* in all."""

    def __init__(self, folder: Path, is_hidden: IsHidden, characters: int) -> None:
        self._folder = folder
        self._is_hidden = is_hidden
        self._left = characters
        self._texts: list[AttachedText] = []
        self._pictures: list[Picture] = []
        self._notices: list[str] = []

    def read(self, prompt: str) -> MentionResult:
        """Read what *prompt* mentions."""
        mentioned = dict(self._mentioned(prompt))
        for number, (name, path) in enumerate(mentioned.items()):
            if number == MAX_MENTIONS:
                self._notices.append(f"Only the first {MAX_MENTIONS} mentioned files are attached.")
                break
            try:
                self._attach(name, path)
            except (UsageError, ToolError, OSError) as error:
                self._notices.append(f"@{name} is not attached: {error}")
        return MentionResult(tuple(self._texts), tuple(self._pictures), tuple(self._notices))

    def _mentioned(self, prompt: str) -> Iterator[tuple[str, Path]]:
        for match in MENTION.finditer(prompt):
            names = [match[1]] if match[1] else _candidates(match[2])
            for name in names:
                path = self._folder / os.path.expanduser(name)  # noqa: PTH111 - text, not a path
                if _exists(path) and (name.endswith("/") or not path.is_dir()):
                    yield name, path
                    break

    def _attach(self, name: str, path: Path) -> None:
        real = Path(os.path.realpath(path))
        if self._is_hidden(real):
            raise UsageError("it is a protected file, which no tool of the agent may read.")
        if real.is_dir():
            self._texts.append(_folder_listing(name, real))
        elif real.suffix.lower() in IMAGE_SUFFIXES:
            self._pictures.append(attachments.read(real))
        else:
            self._attach_file(name, real)

    def _attach_file(self, name: str, real: Path) -> None:
        limit = min(MAX_FILE_CHARACTERS, self._left)
        if limit <= 0:
            raise UsageError("the files mentioned before it fill the space for attachments.")
        with os.fdopen(real_paths.open_file(real), "rb") as file:
            files.require_regular_file(real, os.fstat(file.fileno()))
            data = file.read(4 * (limit + 1))
            is_whole = not file.read(1)
        files.require_text(real, data[: files.SNIFF_BYTES])
        text = data.decode(files.encoding_of(data), errors="replace")
        is_cut = len(text) > limit or not is_whole
        lines = human_format.plural(len(text.splitlines()), "line")
        if is_cut:
            text = f"{text[:limit]}\n[… cut after {limit:,} characters; read_file shows the rest]"
            self._notices.append(
                f"@{name} is long: its first {limit:,} characters are attached, the agent can "
                "read the rest."
            )
        self._left -= len(text)
        size = f"the first {limit:,} characters" if is_cut else lines
        self._texts.append(AttachedText(f"file {name}, {size}", text))


def _candidates(word: str) -> Iterator[str]:
    """A mention as written, then without the punctuation after it."""
    yield word
    while word and word[-1] in CLOSING_CHARACTERS:
        word = word[:-1]
        yield word


def _exists(path: Path) -> bool:
    try:
        return bool(path.name) and path.exists()
    except (OSError, ValueError):
        return False


def _folder_listing(name: str, real: Path) -> AttachedText:
    with os.scandir(real) as listing:
        entries = sorted(f"{entry.name}{'/' if entry.is_dir() else ''}" for entry in listing)
    shown = entries[:MAX_FOLDER_ENTRIES]
    if len(entries) > len(shown):
        shown.append(f"[… {len(entries) - len(shown):,} more items]")
    count = human_format.plural(len(entries), "item")
    return AttachedText(f"folder {name.rstrip('/')}/, {count}", "\n".join(shown))
