"""Whether a model can answer a new conversation, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.providers import model_check, selection

if TYPE_CHECKING:
    from hermes_agent.providers.selection import ModelChoice
    from hermes_core.config.file import Settings

NO_MODEL: Final = "No model is configured."


def usable_model(settings: Settings) -> ModelChoice | None:
    """The model of a new conversation, also that of a local server."""
    return selection.selected_model(settings) or selection.find_local_model()


def problem_of(choice: ModelChoice | None) -> str:
    """Why no conversation can start; empty if one can."""
    if choice is None:
        return NO_MODEL
    missing = model_check.missing_key(choice)
    return "" if missing is None else f"{missing.detail}."
