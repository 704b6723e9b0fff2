"""Whether a setting is set at all, without the table of settings."""

from __future__ import annotations

import os

from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError
from hermes_core.paths import config_path


def is_set(*names: str) -> bool:
    """Whether the environment or config.yaml has one of these settings or sections.

    True if config.yaml cannot be read: reading the setting reports the error.
    """
    if any(os.environ.get(f"HERMES_{name.replace('.', '_').upper()}") for name in names):
        return True
    try:
        return any(yaml_reader.has(config_path(), *name.split(".", 1)) for name in names)
    except ConfigError:
        return True
