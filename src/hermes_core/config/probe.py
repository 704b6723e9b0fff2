"""A cheap test whether a setting may be set, without parsing.

Parsing YAML takes longer than listing conversations. A setting that occurs neither in the
environment nor in the text of config.yaml has its default.
"""

from __future__ import annotations

import os

from hermes_core.paths import config_path


def may_be_set(*names: str) -> bool:
    """Whether any of these settings occurs in the environment or in the text of config.yaml."""
    if any(os.environ.get(f"HERMES_{name.replace('.', '_').upper()}") for name in names):
        return True
    try:
        text = config_path().read_bytes()
    except OSError:  # no file, or an unreadable one, which `config check` reports
        return False
    return any(name.rpartition(".")[2].encode() in text for name in names)
