"""The settings that shape output, read without slowing every command down."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes_core.config.probe import may_be_set
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

AUTO = "auto"


def color(report: Callable[[str], None]) -> str:
    """`display.color`: auto, always or never."""
    return _chosen("display.color", report) or AUTO


def apply_timezone(report: Callable[[str], None]) -> None:
    """Show all times of this process in `display.timezone`."""
    name = _chosen("display.timezone", report)
    if not name:
        return
    from hermes_core.time_zones import find_zone  # noqa: PLC0415 - most have no such setting

    try:
        find_zone(name)  # the C library would take an unknown name for UTC
    except ConfigError as error:
        report(f"hermes: {error}")
        return
    os.environ["TZ"] = name
    time.tzset()


def _chosen(name: str, report: Callable[[str], None]) -> str:
    """What the user chose, or ''; a mistake is reported and does not stop the command."""
    if not may_be_set(name):
        return ""
    from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - YAML is slow to load

    try:
        return ConfigFile.of_home().settings().get_str(name)
    except ConfigError as error:
        report(f"hermes: {error}")
        return ""
