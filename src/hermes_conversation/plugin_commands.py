"""Slash commands of plugins: found by every front end, run isolated and with a time limit."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import HermesError, PluginError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Collection

    from hermes_plugin_host.context import PluginSlashCommand

COMMAND_SECONDS: Final = 60.0
COMMAND_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class ProvidedCommand(NamedTuple):
    """A slash command and the plugin that it comes from."""

    plugin: str
    command: PluginSlashCommand

    def run(self, words: str, seconds: float = COMMAND_SECONDS) -> str:
        """Call the handler with the text after the name; the text to show."""
        ended: Future[Any] = Future()

        def work() -> None:
            ended.set_result(attempt(self._title, lambda: self._call(words)))

        thread = threading.Thread(target=work, name=f"plugin {self.plugin}", daemon=True)
        thread.start()
        thread.join(seconds)
        if not ended.done():
            raise PluginError(f"{self._title} did not return within {seconds:g} s.")
        answer = ended.result()
        if isinstance(answer, Failure):
            raise self._error(answer.error) from answer.error
        return "" if answer is None else str(answer)

    @property
    def _title(self) -> str:
        return f"/{self.command.name} of the plugin {self.plugin}"

    def _call(self, words: str) -> Any:
        try:
            answer = self.command.handler(words)
            return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer
        except SystemExit as stop:
            raise PluginError(f"the command called sys.exit ({stop})") from stop

    def _error(self, error: Exception) -> HermesError:
        if isinstance(error, HermesError):
            return error
        return PluginError(f"{self._title} failed: {type(error).__name__}: {error}")


async def _awaited(answer: Any) -> Any:
    return await answer


def provided_commands(taken: Collection[str]) -> dict[str, ProvidedCommand]:
    """The commands of loaded plugins by name; *taken* names and later plugins lose."""
    if not is_set("plugins.enabled"):
        return {}
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    found: dict[str, ProvidedCommand] = {}
    for key, plugin in hermes_plugin_host.active().plugins.items():
        for command in plugin.registered.commands:
            name = command.name.lower()
            if COMMAND_NAME.fullmatch(name) and name not in taken:
                found.setdefault(name, ProvidedCommand(key, command))
    return found
