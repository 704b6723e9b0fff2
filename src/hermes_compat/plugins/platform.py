"""The arguments of `register_platform` in hermes-agent."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class OriginalPlatform:
    """A platform as plugins of hermes-agent register it."""

    name: str
    label: str
    adapter_factory: Callable[[Any], Any]
    check_fn: Callable[[], bool] | None = None
    validate_config: Callable[[Any], bool] | None = None
    required_env: tuple[str, ...] = ()
    install_hint: str = ""
    max_message_length: int = 0
    env_enablement_fn: Callable[[], dict[str, Any] | None] | None = None
    ignored: tuple[str, ...] = field(default=())  # arguments without a meaning here

    def connect(self, context: Any) -> Any:
        """The adapter of the platform, for the gateway."""
        from hermes_compat.platforms import connect_original  # noqa: PLC0415 - rare

        return connect_original(self, context)


def parse_platform(name: str, arguments: dict[str, Any]) -> OriginalPlatform:
    """Read the arguments; PluginError if one is missing."""
    if not callable(arguments.get("adapter_factory")):
        raise PluginError(f"the platform {name} has no adapter_factory")
    known = {item.name for item in fields(OriginalPlatform)} - {"name", "ignored"}
    used = {key: value for key, value in arguments.items() if key in known and value is not None}
    used["required_env"] = tuple(used.get("required_env", ()))
    used["label"] = str(used.get("label") or name)
    unused = tuple(sorted(key for key, value in arguments.items() if key not in known and value))
    return OriginalPlatform(name, **used, ignored=unused)
