"""The output settings, read without loading YAML unless they may be set."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

AUTO = "auto"


def color_setting(report: Callable[[str], None]) -> str:
    """`display.color`: auto, always or never."""
    return _read_setting("display.color", report) or AUTO


def apply_timezone(report: Callable[[str], None]) -> None:
    """Show all times of this process in `display.timezone`."""
    name = _read_setting("display.timezone", report)
    if not name:
        return
    from hermes_core.time_zones import find_zone  # noqa: PLC0415 - most have no such setting

    try:
        find_zone(name)  # the C library treats an unknown name as UTC
    except ConfigError as error:
        report(f"hermes: {error}")
        return
    os.environ["TZ"] = name
    time.tzset()


def _read_setting(name: str, report: Callable[[str], None]) -> str:
    """The value of a setting, or ''; an invalid value is reported and ignored."""
    if not is_set(name):
        return ""
    from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - YAML is slow to load

    try:
        return ConfigFile.of_home().settings().get_str(name)
    except ConfigError as error:
        report(f"hermes: {error}")
        return ""
