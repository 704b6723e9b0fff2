"""Pictures and texts attached to prompts."""

from __future__ import annotations

import base64
import mimetypes
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from hermes_agent.tools import files, real_paths
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.text_encoding import displayable_text
from hermes_core import human_format, media_store
from hermes_core.errors import UsageError
from hermes_core.messages import ATTACHED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    IsHidden = Callable[[Path], bool]


MAX_IMAGE_BYTES: Final = 25 * 1024 * 1024
DATA_URL: Final = re.compile(r"data:(?P<kind>[\w/+.-]+);base64,(?P<data>.+)", re.DOTALL)
IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


TAIL_BYTES: Final = 4096  # some programs write notes after the end of a picture


class AttachedText(NamedTuple):
    """A text that is part of a message, such as a mentioned file."""

    label: str
    text: str

    def part(self) -> TextPart:
        """The text as a part of a message."""
        return {"type": "text", "text": f"{ATTACHED_PREFIX}{self.label}]\n{self.text}"}


class TextPart(TypedDict):
    """A part of a message that is text."""

    type: str
    text: str


class Picture(NamedTuple):
    """A picture in a format that models accept."""

    name: str
    kind: str
    data: bytes
    path: str = ""  # of the file it was read from

    @property
    def label(self) -> str:
        """The name and the size."""
        return f"image {self.name}, {human_format.size(len(self.data))}"

    @property
    def is_in_file(self) -> bool:
        """Whether it can be read again from its file; that of a pasted picture is temporary."""
        return bool(self.path) and Path(self.path).is_file()

    def part(self) -> dict[str, Any]:
        """The picture as a part of a message."""
        text = base64.b64encode(self.data).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{self.kind};base64,{text}"}}


def read(path: Path) -> Picture:
    """Read a picture from a file; raise UsageError if it is not usable."""
    kind = mimetypes.guess_type(path.name)[0] or ""
    if kind not in IMAGE_TYPES:
        raise UsageError(f"{path} is not a supported image (PNG, JPEG, GIF or WebP).")
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_IMAGE_BYTES // 1024 // 1024} MB.")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not data:
        raise UsageError(f"{path} is empty (0 bytes).")
    actual = image_type(data)
    if not actual:
        raise UsageError(f"{path} is not a readable image: it is damaged or of another type.")
    return Picture(path.name, actual, data, str(path))


def image_type(data: bytes) -> str:
    """The type of a whole picture by its content; empty for anything else, or a part of one."""
    tail = data[-TAIL_BYTES:]
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and b"IEND" in tail:
        return "image/png"
    if data.startswith(b"\xff\xd8\xff") and b"\xff\xd9" in tail:
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")) and b";" in tail:
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        is_whole = int.from_bytes(data[4:8], "little") + 8 <= len(data)
        return "image/webp" if is_whole else ""
    return ""


def with_attachments(
    text: str,
    texts: Sequence[AttachedText],
    pictures: Sequence[Picture],
    stored: Sequence[str] = (),
) -> str | list[Any]:
    """The content of a message with attached texts, pictures and references to *stored* ones."""
    if not texts and not pictures and not stored:
        return text
    parts = [{"type": "image_url", "image_url": {"url": item}} for item in stored]
    return [
        {"type": "text", "text": text},
        *(attached.part() for attached in texts),
        *(picture.part() for picture in pictures),
        *parts,
    ]


def text_of(content: Any) -> str:
    """The text of a message, without what is attached to it."""
    if not isinstance(content, list):
        return str(content or "")
    texts = [str(part.get("text", "")) for part in content if part.get("type") == "text"]
    return "\n".join(text for n, text in enumerate(texts) if not n or not label_of(text))


def label_of(text: str) -> str:
    """What an attached text is, from its first line; empty for other texts."""
    first = text.partition("\n")[0]
    is_attached = first.startswith(ATTACHED_PREFIX) and first.endswith("]")
    return first[len(ATTACHED_PREFIX) : -1] if is_attached else ""


def pictures_of(content: Any) -> list[Picture]:
    """The pictures of a message whose data is available."""
    results: list[Picture] = []
    for part in content if isinstance(content, list) else ():
        url = (part.get("image_url") or {}).get("url", "") if isinstance(part, dict) else ""
        if str(url).startswith(media_store.REFERENCE_SCHEME):
            url = media_store.of_home().as_data(str(url)) or ""
        match = DATA_URL.fullmatch(str(url))
        if match:
            kind, data = match.groups()
            results.append(Picture("image", kind, base64.b64decode(data)))
    return results


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
            self._pictures.append(read(real))
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
        data = data if is_whole else data[: data.rfind(b"\n") + 1] or data
        text = displayable_text(files.decoded(real, data).text.removeprefix("\ufeff"))
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
