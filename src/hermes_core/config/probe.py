"""Whether a setting can have been chosen at all, found out without parsing anything.

Parsing YAML takes longer than listing conversations. A setting that neither the
environment nor the text of config.yaml mentions has its default, and no parser is needed
to know that.
"""

from __future__ import annotations

import os

from hermes_core.paths import config_path


def may_be_set(*names: str) -> bool:
    """Whether the environment or the text of config.yaml speaks of any of these settings."""
    if any(os.environ.get(f"HERMES_{name.replace('.', '_').upper()}") for name in names):
        return True
    try:
        text = config_path().read_bytes()
    except OSError:  # no file, or one that `config check` complains about
        return False
    return any(name.rpartition(".")[2].encode() in text for name in names)
