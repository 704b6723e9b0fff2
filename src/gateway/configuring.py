"""The gateway's settings, from where people write them: `gateway.json`, then `config.yaml`."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from gateway.config import GatewayConfig
from hermes_core import paths
from hermes_core.config_file import ConfigFile

log = logging.getLogger(__name__)

LEGACY: Final = "gateway.json"


def config_of_home() -> GatewayConfig:
    """What the user has written down; `config.yaml` wins over the older file."""
    data = _legacy()
    config = ConfigFile.of_home()
    settings = config.settings()
    data["session_reset"] = {
        "mode": settings.get_str("session_reset.mode"),
        "at_hour": settings.get_int("session_reset.at_hour"),
        "idle_minutes": settings.get_int("session_reset.idle_minutes"),
    }
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
    return found if isinstance(found, dict) else {}
