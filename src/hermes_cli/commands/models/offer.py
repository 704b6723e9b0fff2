"""Offers the built-in model to interactive users without a configured model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_agent.local import built_in
from hermes_cli.output import confirm
from hermes_conversation import agent_factory
from hermes_core.config.file import ConfigFile
from hermes_core.errors import NoModelError

if TYPE_CHECKING:
    from hermes_cli.output import CommandOutput


def require_model(model: str, out: CommandOutput) -> None:
    """Raise NoModelError unless a model is available or the user installs one."""
    try:
        agent_factory.model_chain(ConfigFile.of_home().settings(), model)
    except NoModelError:
        if not (sys.stdin.isatty() and out.is_watched):
            raise
        _offer(out)


def _offer(out: CommandOutput) -> None:
    from hermes_cli.commands.models import command  # noqa: PLC0415 - only on the first start

    out.note("No model is configured. Run `hermes setup` to choose one (an API key is optional).")
    size = f"{built_in.DOWNLOAD_MB} MB"
    question = f"Download the small built-in model now ({size}; for trying things out only)?"
    if not confirm(question, out, is_confirmed=False):
        raise NoModelError(agent_factory.NO_MODEL)
    command.install_built_in(out)
