"""Files of a message made into what a model can read: pictures, words spoken, paths.

Voice is written down by a command of the user's choice or by a server that speaks
OpenAI's API for it. What cannot be heard is said to the model, never left out.
"""

from __future__ import annotations

import logging
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hermes_conversation.agent_factory import environment_without_secrets
from hermes_core.errors import UsageError
from hermes_core.media_store import SCHEME

if TYPE_CHECKING:
    from gateway.platforms.base import MessageEvent
    from hermes_core.config.file import Settings

log = logging.getLogger(__name__)

COMMAND_SECONDS: Final = 300
ASK_SECONDS: Final = 120.0
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Transcriber(Protocol):
    """Something that makes words of speech."""

    def __call__(self, path: Path, /) -> str:
        """What is said in a file; an error says why it cannot be heard."""


class ReadAttachments(NamedTuple):
    """What came along with a message."""

    notes: list[str]  # lines for the model
    pictures: list[str]  # references to kept files


def heard(event: MessageEvent, write_down: Transcriber | None) -> ReadAttachments:
    """Make the files of a message readable."""
    found = ReadAttachments([], [])
    for path, mime in zip(event.media_urls, event.media_types, strict=False):
        if mime in PICTURES:
            kept = Path(path)
            found.pictures.append(f"{SCHEME}{kept.parent.name}/{kept.name}")
        elif mime.startswith("audio/"):
            found.notes.append(_spoken(Path(path), mime, write_down))
        else:
            found.notes.append(f"[a file came along: {path} ({mime})]")
    return found


def _spoken(path: Path, mime: str, write_down: Transcriber | None) -> str:
    if write_down is None:
        return f"[a voice message came along, which cannot be heard: {path} ({mime})]"
    try:
        return write_down(path)
    except UsageError as error:
        log.warning("a voice message was not written down: %s", error)
        return f"[a voice message came along, which could not be heard ({error}): {path}]"


class ByCommand:
    """A command of the user's: `{file}` stands for the file, its output is the text."""

    def __init__(self, command: str) -> None:
        self._words = shlex.split(command)

    def __call__(self, path: Path) -> str:
        """Run it."""
        words = [one.replace("{file}", str(path)) for one in self._words]
        if words == self._words:
            words.append(str(path))
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                timeout=COMMAND_SECONDS,
                check=False,
                env=environment_without_secrets(),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"{words[0]}: {error}") from error
        if done.returncode:
            tail = done.stderr.decode(errors="replace").strip()[-200:]
            raise UsageError(f"{words[0]} ended with {done.returncode}: {tail}")
        return done.stdout.decode(errors="replace").strip()


class ByServer:
    """A server with `/audio/transcriptions`, as OpenAI's."""

    def __init__(self, url: str, key: str, model: str) -> None:
        self._url = f"{url.rstrip('/')}/audio/transcriptions"
        self._key = key
        self._model = model

    def __call__(self, path: Path) -> str:
        """Ask it."""
        import httpx2  # noqa: PLC0415 - only where somebody speaks

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            with path.open("rb") as file:
                answer = httpx2.post(
                    self._url,
                    headers=headers,
                    data={"model": self._model},
                    files={"file": (path.name, file)},
                    timeout=ASK_SECONDS,
                )
            answer.raise_for_status()
            return str(answer.json()["text"]).strip()
        except (OSError, httpx2.HTTPError, ValueError, KeyError) as error:
            raise UsageError(f"{self._url}: {error}") from error


def writer_of(settings: Settings) -> Transcriber | None:
    """What the user has set up to write down speech; None when nothing is."""
    command = settings.get_str("gateway.transcribe_command")
    if command:
        return ByCommand(command)
    url = settings.get_str("gateway.transcribe_url")
    if url:
        key = settings.get_secret("keys.transcribe") or settings.get_secret("keys.openai") or ""
        return ByServer(url, key, settings.get_str("gateway.transcribe_model"))
    return None
