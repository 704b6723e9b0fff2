"""Offers to set up a model to interactive users without one, or that of hermes-agent."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from hermes_agent.providers.selection import environment_model
from hermes_cli.output import confirm
from hermes_conversation import agent_factory
from hermes_conversation.original_home.home import offered_home
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import NoModelError

if TYPE_CHECKING:
    from hermes_cli.output import CommandOutput
    from hermes_conversation.original_home.home import OriginalHome
    from hermes_core.config.file import Settings

ORIGINAL_FOUND: Final = (
    "Found settings of hermes-agent in {path}. Import them with `hermes import hermes-agent`."
)


def require_model(model: str, out: CommandOutput) -> None:
    """Raise NoModelError unless a model is available or the user sets one up."""
    settings = ConfigFile.of_home().settings()
    if not model and settings.get_str("llm.model") == "" and environment_model(settings):
        _mention_original(settings, out)
    try:
        agent_factory.model_chain(ConfigFile.of_home().settings(), model)
    except NoModelError as error:
        home = offered_home()
        if not (sys.stdin.isatty() and out.is_watched):
            if home is None:
                raise
            raise NoModelError(f"{error} {ORIGINAL_FOUND.format(path=home.path)}") from error
        if home is None or not _move(home, out):
            _offer(out)


def _mention_original(settings: Settings, out: CommandOutput) -> None:
    """Offer the settings of hermes-agent before a key that was found is used."""
    if sys.stdin.isatty() and out.is_watched:
        offer_original(settings, out)
        return
    home = offered_home()
    if home is None:
        return
    hint = ORIGINAL_FOUND.format(path=home.path)
    found = environment_model(settings)
    if found is not None and found.variable not in os.environ:  # the key is from that home, too
        raise NoModelError(f"{with_command_name(agent_factory.NO_MODEL)} {hint}")
    out.note(hint)


def offer_original(settings: Settings, out: CommandOutput) -> bool:
    """Offer the settings of hermes-agent before a model is chosen; whether there is one now."""
    home = None if settings.get_str("llm.model") else offered_home()
    return home is not None and _move(home, out)


def _move(home: OriginalHome, out: CommandOutput) -> bool:
    """Offer to move from hermes-agent; whether a model is configured then."""
    from hermes_cli.commands.imports import original_home  # noqa: PLC0415 - only on the first start

    is_moved = original_home.offer(home, out)
    return is_moved and bool(ConfigFile.of_home().settings().get_str("llm.model"))


def _offer(out: CommandOutput) -> None:
    from hermes_cli.commands.models import setup  # noqa: PLC0415 - only on the first start

    out.note("No model is configured. An API key is optional: local servers and a demo work, too.")
    if not confirm("Set one up now?", out, is_confirmed=False):
        raise NoModelError(agent_factory.NO_MODEL)
    if not setup.choose(ConfigFile.of_home(), out):
        raise NoModelError(agent_factory.NO_MODEL)
