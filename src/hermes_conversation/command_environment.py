"""The environment variables that commands of the agent, hooks and MCP servers get."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from typing import TYPE_CHECKING, Final

import hermes_plugin_host
from hermes_agent.providers.apis import PRESETS
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError
from hermes_core.roles import Right, Role, may

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_core.config.file import Settings

MEMBER_NAMES: Final = re.compile(r"PATH|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|SHELL")
SECRET_NAMES: Final = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|PASSFILE|CREDENTIAL|APIKEY|COOKIE|WEBHOOK|AUTHORIZATION"
    r"|(^|_)(KEY|KEY_ID|PAT|PASS|AUTH|BEARER|JWT|DSN)$|_PWD$",
    re.IGNORECASE,
)
SECRET_VALUES: Final = re.compile(
    r"://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY|\bgh[pousr]_\w{20}|github_pat_|\bglpat-"
    r"|\bsk-[\w-]{16}|\b[sr]k_(live|test)_|\bxox[abeoprs]-|\bA[KS]IA[0-9A-Z]{12}|\beyJ[\w-]+\.eyJ"
    r"|\bAIza[\w-]{30}|\bya29\.|\b(hf|npm|gsk)_\w{30}|\bpypi-\w{16}|\bSG\.[\w-]{16}|\bhv[bs]\.\w{16}"
    r"|\bAGE-SECRET-KEY-|hooks\.slack\.com/|/api/webhooks/|AccountKey=|[?&;](sig|token|key|password)="
    r"|\b[Bb]earer [\w.~+/-]{8}"
)


def environment_without_secrets() -> dict[str, str]:
    """The environment for commands of the agent, without the secrets of Hermes."""
    secret = {setting.variable for setting in SETTINGS if setting.secret}
    secret |= {variable for preset in PRESETS for variable in preset.other_variables}
    # An unreadable file names no secrets; the gateway and `config check` report it.
    with contextlib.suppress(ConfigError):
        secret |= set(_named_secrets(ConfigFile.of_home().block("platforms")))
    if is_set("plugins.enabled"):
        secret |= hermes_plugin_host.active().secret_variables
    return {name: value for name, value in os.environ.items() if name not in secret}


def command_environment(role: Role, folder: Path, settings: Settings) -> dict[str, str]:
    """The environment of the agent's commands; what they print is sent to the model.

    Commands of members get a few variables of the system. Those of the owner get all but what
    looks like a secret, and what `agent.environment` names.
    """
    if not may(role, Right.ALL_FILES):
        shared = {name: value for name, value in os.environ.items() if MEMBER_NAMES.fullmatch(name)}
        return {**shared, "HOME": str(folder)}
    passed = settings.get_list("agent.environment")
    return {
        name: value
        for name, value in environment_without_secrets().items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in passed)
        or not (SECRET_NAMES.search(name) or SECRET_VALUES.search(value))
    }


def _named_secrets(block: object) -> Iterator[str]:
    """Variables named by `secret_env` anywhere in the settings of platforms."""
    if not isinstance(block, dict):
        return
    for name, value in block.items():
        if name == "secret_env":
            yield str(value)
        else:
            yield from _named_secrets(value)
