"""What editors choose for a conversation: permission mode, model, MCP servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from acp.schema import (
    HttpMcpServer,
    McpServerStdio,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from hermes_acp.prompt_content import invalid
from hermes_agent.permissions.approvals import MODES
from hermes_conversation.slash_commands import MODE_HELP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp.schema import AcpMcpServer, SseMcpServer

    from hermes_core.json_values import JsonObject
    from tui_gateway.protocol import ModelSummary

    EditorMcpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

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


def servers_json(servers: Sequence[EditorMcpServer] | None) -> str:
    """The servers as the daemon reads them; empty for none."""
    return json.dumps([_server(server) for server in servers]) if servers else ""


def _server(server: EditorMcpServer) -> JsonObject:
    if isinstance(server, McpServerStdio):
        return {
            "name": server.name,
            "command": server.command,
            "args": list(server.args),
            "env": {variable.name: variable.value for variable in server.env},
        }
    if isinstance(server, HttpMcpServer):
        headers: JsonObject = {header.name: header.value for header in server.headers}
        return {"name": server.name, "url": server.url, "headers": headers}
    raise invalid(f"The MCP server {server.name} has an unsupported transport; use stdio or HTTP.")
