"""The gateway's settings, from where people write them: `gateway.json`, then `config.yaml`."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from gateway.config import GatewayConfig, PlatformConfig
from gateway.platforms.names import Platform
from gateway.platforms.registry import PlatformRegistry
from hermes_core import paths
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from gateway.platforms.registry import PlatformEntry

log = logging.getLogger(__name__)

LEGACY: Final = "gateway.json"
BLOCKS: Final = ("platforms", "reset_by_platform", "reset_by_type", "streaming")
FLAGS: Final = ("group_sessions_per_user", "thread_sessions_per_user")
NUMBERS: Final = ("max_concurrent_sessions", "session_store_max_age_days")


def config_of_home() -> GatewayConfig:
    """What the user has written down; `config.yaml` wins over the older file."""
    PlatformRegistry.of_home()  # so that the platforms of plugins have names
    data = _legacy()
    config = ConfigFile.of_home()
    settings = config.settings()
    data["session_reset"] = {
        "mode": settings.get_str("session_reset.mode"),
        "at_hour": settings.get_int("session_reset.at_hour"),
        "idle_minutes": settings.get_int("session_reset.idle_minutes"),
    }
    for name in BLOCKS:
        data[name] = {**_mapping(data.get(name)), **config.block(name)}
    written = {
        one: config.entry(f"gateway.{one}")
        for one in (*FLAGS, *NUMBERS, "unauthorized_dm_behavior")
    }
    for name, entry in written.items():
        if entry.source != "default" or name not in data:
            data[name] = entry.value
    return GatewayConfig.from_dict(data)


def _legacy() -> dict[str, Any]:
    path = paths.hermes_home() / LEGACY
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning("%s cannot be read and is left out: %s", path, error)
        return {}
    return _mapping(found)


def _mapping(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


class Secrets:
    """Tokens and keys: from the environment, then `.env`, and from nowhere else."""

    def __init__(self, config: ConfigFile | None = None) -> None:
        self._variables = (config or ConfigFile.of_home()).variables()

    def __call__(self, name: str) -> str:
        """The secret of a variable; empty when it is not set."""
        return self._variables.get(name, "").strip()


def enabled(
    config: GatewayConfig, registry: PlatformRegistry, secrets: Secrets
) -> list[PlatformEntry]:
    """The platforms to be connected: those switched on, and those whose tokens are there.

    The socket of this machine always is; `enabled: false` switches any other off.
    """
    return [one for one in registry if _is_enabled(one, config, secrets)]


def _is_enabled(entry: PlatformEntry, config: GatewayConfig, secrets: Secrets) -> bool:
    if entry.name == "local":
        return True
    written = config.platforms.get(Platform.registered(entry.name))
    if written is not None and (written.enabled or written.is_off):
        return not written.is_off
    return bool(entry.secrets) and all(map(secrets, entry.secrets))


def of(config: GatewayConfig, name: str) -> PlatformConfig:
    """What is written for a platform; a token in a file is not used."""
    found = config.platforms.get(Platform.registered(name)) or PlatformConfig()
    if found.token or found.api_key:
        log.warning(
            "the token of %s in a configuration file is not used: put it into .env or the "
            "environment",
            name,
        )
    return found
