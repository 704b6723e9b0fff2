"""The table of all settings.

Validation, the `config` commands, environment variables and docs/reference/settings.md read
it. A setting is named `section.key`, as in config.yaml. Sections whose keys are chosen by the
user are listed in BLOCKS; their users validate them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.config.definitions.checkpoints import CHECKPOINT_SETTINGS
from hermes_core.config.definitions.gateway import GATEWAY_SETTINGS
from hermes_core.config.definitions.interfaces import INTERFACES_SETTINGS
from hermes_core.config.definitions.models import MODELS_SETTINGS
from hermes_core.config.definitions.storage import STORAGE_SETTINGS

if TYPE_CHECKING:
    from hermes_core.config.schema import Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    *STORAGE_SETTINGS,
    *MODELS_SETTINGS,
    *GATEWAY_SETTINGS,
    *INTERFACES_SETTINGS,
    *CHECKPOINT_SETTINGS,
)

BLOCKS: Final[dict[str, str]] = {
    "hooks": "Shell commands that run at events, in the format of Claude Code.",
    "mcp_servers": "MCP servers whose tools the agent may use, by name.",
    "prices": "Prices of models in dollars per million tokens, by name; they replace known ones.",
    "platforms": "Options of chat platforms, by name; tokens are settings of their own.",
    "reset_by_platform": "Overrides of session_reset by platform.",
    "reset_by_type": "Overrides of session_reset by chat type: dm, group, thread.",
    "streaming": "Live display of replies in chats while they are generated.",
}
