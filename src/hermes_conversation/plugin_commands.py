"""Slash commands of plugins: found by every front end, run isolated and with a time limit."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.config.probe import may_be_set
from hermes_core.errors import HermesError, PluginError
from hermes_core.isolate import Step, attempt

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
        answers: list[Any] = []
        errors: list[Exception] = []

        def work() -> None:
            failed = attempt(Step(self._title, lambda: answers.append(self._call(words))))
            if failed is not None:
                errors.append(failed.error)

        thread = threading.Thread(target=work, name=f"plugin {self.plugin}", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            raise PluginError(f"{self._title} did not return within {seconds:g} s.")
        if errors:
            raise self._error(errors[0]) from errors[0]
        answer = answers[0] if answers else None
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
    if not may_be_set("plugins.enabled"):
        return {}
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    found: dict[str, ProvidedCommand] = {}
    for key, plugin in hermes_plugin_host.active().plugins.items():
        for command in plugin.registered.commands:
            name = command.name.lower()
            if COMMAND_NAME.fullmatch(name) and name not in taken:
                found.setdefault(name, ProvidedCommand(key, command))
    return found
