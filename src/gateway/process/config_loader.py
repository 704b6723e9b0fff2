"""Loads the gateway configuration from `gateway.json` and `config.yaml`."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from gateway import config_values
from gateway.config import GatewayConfig, PlatformConfig
from gateway.platforms.names import Platform
from gateway.platforms.registry import PlatformRegistry, explain_missing
from hermes_core import paths
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import PlatformSpec
    from hermes_core.json_values import JsonObject

log = logging.getLogger(__name__)

LEGACY_FILE_NAME: Final = "gateway.json"
BLOCK_KEYS: Final = ("platforms", "reset_by_platform", "reset_by_type", "streaming")
FLAG_KEYS: Final = ("group_sessions_per_user", "thread_sessions_per_user")
MULTIPLEX_KEY: Final = "multiplex_profiles"
NUMBER_KEYS: Final = ("max_concurrent_sessions", "session_store_max_age_days")


def config_of_home() -> GatewayConfig:
    """The configuration; `config.yaml` overrides the older `gateway.json`."""
    PlatformRegistry.of_home()  # registers the names of plugin platforms
    data = _read_legacy()
    config = ConfigFile.of_home()
    settings = config.settings()
    data["session_reset"] = {
        "mode": settings.get_str("session_reset.mode"),
        "at_hour": settings.get_int("session_reset.at_hour"),
        "idle_minutes": settings.get_int("session_reset.idle_minutes"),
    }
    for name in BLOCK_KEYS:
        data[name] = {**_mapping(data.get(name)), **_mapping(config.block(name))}
    _register_names(_mapping(data["platforms"]))
    configured = {
        item: config.entry(f"gateway.{item}")
        for item in (*FLAG_KEYS, *NUMBER_KEYS, "unauthorized_dm_behavior")
    }
    for name, entry in configured.items():
        if entry.source != "default" or name not in data:
            data[name] = list(entry.value) if isinstance(entry.value, tuple) else entry.value
    holders = (data, config.sections(), _mapping(config.sections().get("gateway")))
    data[MULTIPLEX_KEY] = any(
        config_values.flag(holder.get(MULTIPLEX_KEY), default=False) for holder in holders
    )
    return GatewayConfig.from_dict(data)


def _read_legacy() -> JsonObject:
    path = paths.hermes_home() / LEGACY_FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning("%s ignored: %s", path, error)
        return {}
    return _mapping(data)


def _mapping(data: Any) -> JsonObject:
    return data if isinstance(data, dict) else {}


def _register_names(platforms: JsonObject) -> None:
    """Know every configured platform: a plugin that is not loaded may have stored messages."""
    for name in map(str, platforms):
        if name.isidentifier() and name == name.lower():
            Platform.registered(name)


def unavailable_platforms(registry: PlatformRegistry) -> dict[str, str]:
    """The enabled platforms of `config.yaml` that do not exist, with the reason."""
    return {
        name: explain_missing(name)
        for name, item in ConfigFile.of_home().block("platforms").items()
        if registry.get(name) is None
        and config_values.flag(config_values.mapping(item).get("enabled"), default=False)
    }


class Secrets:
    """Tokens and keys, only from the environment and `.env`."""

    def __init__(self, config: ConfigFile | None = None) -> None:
        self._variables = (config or ConfigFile.of_home()).variables()

    def __call__(self, name: str) -> str:
        """The secret in a variable; empty if it is not set."""
        return self._variables.get(name, "").strip()


def enabled_platforms(
    config: GatewayConfig, registry: PlatformRegistry, secrets: Secrets
) -> list[PlatformSpec]:
    """The platforms to connect: those that are enabled, and those whose secrets are set.

    The local socket is always enabled; `enabled: false` disables any other platform.
    """
    return [item for item in registry if _is_enabled(item, config, secrets)]


def _is_enabled(entry: PlatformSpec, config: GatewayConfig, secrets: Secrets) -> bool:
    if entry.name == "local":
        return True
    configured = config.platforms.get(Platform.registered(entry.name))
    if configured is not None and (configured.enabled or configured.is_off):
        return not configured.is_off
    return bool(entry.secrets) and all(map(secrets, entry.secrets))


def platform_config(config: GatewayConfig, name: str) -> PlatformConfig:
    """The configuration of a platform; a token in it is ignored."""
    configured = config.platforms.get(Platform.registered(name)) or PlatformConfig()
    if configured.token or configured.api_key:
        log.warning(
            "token of %s in a configuration file ignored: set it in .env or the environment",
            name,
        )
    return configured
