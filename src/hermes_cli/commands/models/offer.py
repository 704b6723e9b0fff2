"""What answers if no model is configured: that of hermes-agent, the built-in demo, or a setup."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from hermes_agent.local import built_in
from hermes_agent.providers.selection import environment_model
from hermes_cli.output import ask, confirm
from hermes_conversation import agent_factory
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import FetchError, NoModelError

if TYPE_CHECKING:
    from hermes_cli.output import CommandOutput
    from hermes_compat.original_home.home import OriginalHome
    from hermes_core.config.file import Settings

ORIGINAL_FOUND: Final = (
    "Found settings of hermes-agent in {path}. Import them with `hermes import hermes-agent`."
)

QUESTION: Final = (
    f"Press Enter to start with the built-in demo model ({built_in.DOWNLOAD_MB} MB download), "
    "or type s to set up another one: "
)


def offered_home() -> OriginalHome | None:
    """The home of hermes-agent, if there is one to import."""
    from hermes_compat.original_home import home  # noqa: PLC0415 - only without a model

    return home.offered_home()


def require_model(model: str, out: CommandOutput) -> None:
    """Raise NoModelError unless a model is available, is downloaded or set up."""
    settings = ConfigFile.of_home().settings()
    if not model and settings.get_str("llm.model") == "" and environment_model(settings):
        _mention_original(settings, out)
    try:
        agent_factory.model_chain(ConfigFile.of_home().settings(), model)
    except NoModelError as error:
        home = offered_home()
        may_download = not model and settings.get_str("llm.built_in") != "never"
        if sys.stdin.isatty() and out.is_watched:
            if home is None or not _move(home, out):
                _offer(out, may_download=may_download)
        elif home is not None:
            raise NoModelError(f"{error} {ORIGINAL_FOUND.format(path=home.path)}") from error
        elif may_download:
            _download(out)
        else:
            raise


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


def _offer(out: CommandOutput, *, may_download: bool) -> None:
    from hermes_cli.commands.models import setup  # noqa: PLC0415 - only on the first start

    out.note("No model is configured. An API key is optional: local servers and a demo work, too.")
    if may_download:
        answer = ask(QUESTION, out, at_end="n").lower()
        if answer in {"", "y", "yes"}:
            _download(out)
            return
        wants_setup = answer in {"s", "setup"}
    else:
        wants_setup = confirm("Set one up now?", out, is_confirmed=False)
    if not wants_setup or not setup.choose(ConfigFile.of_home(), out):
        raise NoModelError(agent_factory.NO_MODEL)


def _download(out: CommandOutput) -> None:
    """Download the built-in model, which then answers because no other one is found."""
    size = f"{built_in.DOWNLOAD_MB} MB, once"
    out.note(f"No model is configured: downloading the built-in demo model ({size})…")
    try:
        built_in.fetch(built_in.BuiltIn.of_home(), out.progress)
    except FetchError as error:
        out.note(f"The built-in model could not be downloaded: {error}")
        raise NoModelError(agent_factory.NO_MODEL) from error
