"""Transcription of voice messages: by a configured command, a server, or a plugin."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict

import hermes_plugin_host
from hermes_conversation.command_environment import environment_without_secrets
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import UsageError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.config.file import Settings

COMMAND_TIMEOUT_SECONDS: Final = 300
SERVER_TIMEOUT_SECONDS: Final = 120.0


class Transcriber(Protocol):
    """Turns speech into text."""

    def __call__(self, path: Path, /) -> str:
        """The text of an audio file; UsageError with the reason if it cannot be transcribed."""


class CommandTranscriber:
    """Runs a command of the user: `{file}` is replaced by the file, the output is the text."""

    def __init__(self, command: str) -> None:
        self._arguments = shlex.split(command)

    def __call__(self, path: Path) -> str:
        """Run the command."""
        arguments = [argument.replace("{file}", str(path)) for argument in self._arguments]
        if arguments == self._arguments:
            arguments.append(str(path))
        try:
            process = subprocess.run(
                arguments,
                capture_output=True,
                timeout=COMMAND_TIMEOUT_SECONDS,
                check=False,
                env=environment_without_secrets(),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"{arguments[0]}: {error}") from error
        if process.returncode:
            tail = process.stderr.decode(errors="replace").strip()[-200:]
            raise UsageError(f"{arguments[0]} exited with status {process.returncode}: {tail}")
        return process.stdout.decode(errors="replace").strip()


class Transcription(TypedDict):
    """The answer of a transcription server."""

    text: str


class ServerTranscriber:
    """Posts the file to `/audio/transcriptions` of an OpenAI-compatible server."""

    def __init__(self, url: str, key: str, model: str) -> None:
        self._url = f"{url.rstrip('/')}/audio/transcriptions"
        self._key = key
        self._model = model

    def __call__(self, path: Path) -> str:
        """Send the request."""
        import httpx2  # noqa: PLC0415 - only needed once a voice message arrives

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            with path.open("rb") as file:
                response = httpx2.post(
                    self._url,
                    headers=headers,
                    data={"model": self._model},
                    files={"file": (path.name, file)},
                    timeout=SERVER_TIMEOUT_SECONDS,
                )
            response.raise_for_status()
            answer: Transcription = response.json()
            return str(answer["text"]).strip()
        except (OSError, httpx2.HTTPError, ValueError, KeyError) as error:
            raise UsageError(f"{self._url}: {error}") from error


def transcriber_of(settings: Settings) -> Transcriber | None:
    """The configured transcriber; None if there is none."""
    command = settings.get_str("gateway.transcribe_command")
    if command:
        return CommandTranscriber(command)
    url = settings.get_str("gateway.transcribe_url")
    if url:
        key = settings.get_secret("keys.transcribe") or settings.get_secret("keys.openai") or ""
        return ServerTranscriber(url, key, settings.get_str("gateway.transcribe_model"))
    return _plugin_transcriber() if is_set("plugins.enabled") else None


class PluginTranscriber:
    """Calls the transcriber of a plugin."""

    def __init__(self, plugin: str, transcribe: Callable[[str], Any]) -> None:
        self._plugin = plugin
        self._transcribe = transcribe

    def __call__(self, path: Path) -> str:
        """Call the plugin; its failure is the reason."""
        text = attempt(f"transcribe by {self._plugin}", lambda: self._call(path))
        if isinstance(text, Failure):
            raise UsageError(f"plugin {self._plugin}: {text.error}") from text.error
        return str(text).strip()

    def _call(self, path: Path) -> Any:
        answer = self._transcribe(str(path))
        if not isinstance(answer, dict):
            return answer
        if answer.get("error"):
            raise UsageError(str(answer.get("error")))
        return answer.get("text") or answer.get("transcript") or ""


def _plugin_transcriber() -> Transcriber | None:
    for plugin in hermes_plugin_host.active().plugins.values():
        for transcribe in plugin.registered.transcribers:
            return PluginTranscriber(plugin.key, transcribe)
    return None
