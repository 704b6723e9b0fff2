"""The module `tools.registry` of hermes-agent: tools that register themselves when imported."""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    RegisterTool = Callable[..., None]

REGISTER_TOOL: Final[ContextVar[Any]] = ContextVar(
    "register_tool of the plugin that is being loaded"
)


@contextmanager
def registering(register_tool: RegisterTool) -> Iterator[None]:
    """Give the tools that register themselves meanwhile to the plugin that is being loaded."""
    token = REGISTER_TOOL.set(register_tool)
    try:
        yield
    finally:
        REGISTER_TOOL.reset(token)


class ToolRegistry:
    """Registers tools for the plugin that is being loaded."""

    def register(
        self, name: str, toolset: str, schema: dict[str, Any], handler: Any, **options: Any
    ) -> None:
        """Add a tool, as `ctx.register_tool` does; unknown options are ignored."""
        register_tool = REGISTER_TOOL.get(None)
        if register_tool is None:
            raise PluginError(f"the tool {name} can only be registered while a plugin is loaded")
        known = ("check_fn", "requires_env", "is_async", "description", "emoji", "override")
        chosen = {key: value for key, value in options.items() if key in known and value}
        register_tool(name, toolset, schema, handler, **chosen)


registry: Final = ToolRegistry()


def tool_error(message: str, **fields: Any) -> str:
    """The result of a failed call."""
    return json.dumps({"error": message, **fields}, ensure_ascii=False)


def tool_result(data: Any = None, **fields: Any) -> str:
    """The result of a call."""
    return json.dumps(fields if data is None else data, ensure_ascii=False)
