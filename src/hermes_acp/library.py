"""The library of the protocol, which is installed on demand."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hermes_core.package_installer import Library

SDK: Final = Library(
    "acp", "editors", "acp", Path(__file__).with_name("requirements.lock"), download_mb=1, disk_mb=1
)
MISSING: Final = (
    "The library for editors (agent-client-protocol) is not installed. Run `hermes acp --install`."
)
