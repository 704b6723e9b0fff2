"""The permission mode and the model of a conversation, as editors show and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp.schema import (
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from hermes_agent.permissions.approvals import MODES
from hermes_conversation.slash_commands import MODE_HELP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_gateway.summaries import ModelSummary

MODE_OPTION: Final = "mode"
MODEL_OPTION: Final = "model"


def mode_state(mode: str) -> SessionModeState:
    """The modes, and the current one."""
    modes = [
        SessionMode(id=name, name=name.capitalize(), description=MODE_HELP[name]) for name in MODES
    ]
    return SessionModeState(current_mode_id=mode, available_modes=modes)


def config_options(
    mode: str, model: str, models: Sequence[ModelSummary]
) -> list[SessionConfigOptionSelect]:
    """The mode and the model as options."""
    mode_values = [
        SessionConfigSelectOption(value=name, name=name.capitalize(), description=MODE_HELP[name])
        for name in MODES
    ]
    known = [
        SessionConfigSelectOption(value=item.name, name=shown_name(item), description=item.provider)
        for item in models
    ]
    if model not in {item.name for item in models}:
        known.insert(0, SessionConfigSelectOption(value=model, name=model))
    return [
        SessionConfigOptionSelect(
            id=MODE_OPTION, name="Permissions", category="mode", type="select",
            current_value=mode, options=mode_values,
        ),
        SessionConfigOptionSelect(
            id=MODEL_OPTION, name="Model", category="model", type="select",
            current_value=model, options=known,
        ),
    ]  # fmt: skip


def shown_name(model: ModelSummary) -> str:
    """The name of a model without the URL of its server."""
    return model.name.rpartition("#")[2]
