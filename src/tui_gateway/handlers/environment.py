"""Handlers for completion, settings, the shell and the shutdown."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_conversation import slash_commands
from hermes_conversation.slash_commands import Surface
from hermes_core.config.file import ConfigFile
from hermes_core.errors import CheckpointError, UsageError
from hermes_core.json_values import parse_object
from tui_gateway import client_environment
from tui_gateway.frames import INVALID_PARAMS, NOTHING_TO_DO, RpcError
from tui_gateway.protocol import ModelSummary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.protocol import ModelsView, SettingView, ShellResult, SlashCompletions

MAX_COMPLETIONS: Final = 50
SHELL_SECONDS: Final = 60


def surface_of(name: str) -> Surface:
    """The front end that a client names; by default the terminal UI."""
    found = (name or "screen").upper()
    if found not in Surface.__members__:
        raise RpcError(INVALID_PARAMS, f"unknown surface {name!r}")
    return Surface[found]


def folder_of(cwd: str) -> Path | None:
    """The working folder of a client, if it names one."""
    return Path(cwd) if cwd else None


def complete_slash(
    _peer: Dispatcher, *, text: str, cwd: str = "", surface: str = ""
) -> SlashCompletions:
    """Complete a slash command."""
    text = text.removeprefix("/")
    names = [
        f"/{command.name}"
        for command in slash_commands.listed_commands(surface_of(surface), folder_of(cwd))
        if command.name.startswith(text)
    ]
    return {"items": names, "replace_from": 0}


def complete_path(_peer: Dispatcher, *, word: str, cwd: str = "") -> list[str]:
    """Complete a path."""
    word = os.path.expanduser(word)  # noqa: PTH111 - text, not a path
    base = Path(cwd or ".")
    folder, _, start = word.rpartition("/")
    parent = base / folder if folder or not word.startswith("/") else Path("/")
    try:
        matches = sorted(path for path in parent.iterdir() if path.name.startswith(start))
    except (OSError, ValueError):
        return []
    prefix = f"{folder}/" if "/" in word else ""
    visible = [path for path in matches if start or not path.name.startswith(".")]
    return [
        f"{prefix}{path.name}{'/' if path.is_dir() else ''}" for path in visible[:MAX_COMPLETIONS]
    ]


def update_environment(_peer: Dispatcher, *, variables: str) -> list[str]:
    """Use API keys and addresses of the client's environment, a JSON object in `variables`; they
    are kept in memory only.
    """
    given = parse_object(variables)
    if given is None or not all(isinstance(value, str) for value in given.values()):
        raise RpcError(INVALID_PARAMS, "`variables` must be a JSON object of strings")
    unknown = sorted(given.keys() - client_environment.known_names())
    if unknown:
        raise RpcError(INVALID_PARAMS, f"not a variable of a model provider: {unknown[0]}")
    texts = {name: str(value) for name, value in given.items()}
    return client_environment.take_over(texts)


def models(_peer: Dispatcher, *, search: str = "") -> ModelsView:
    """The models of all providers whose key is known."""
    from hermes_agent.providers import catalog  # noqa: PLC0415 - needs HTTP, for this only

    endpoints = catalog.known_endpoints(ConfigFile.of_home().settings())
    lists = catalog.ModelCatalog().load(endpoints)
    found = catalog.search(catalog.all_models(lists), search)
    return {
        "models": [
            ModelSummary(
                model.name, model.provider, model.window, model.input_price, model.output_price
            )
            for model in found
        ],
        "problems": [each.problem for each in lists if each.problem],
    }


def complete_file(
    peer: Dispatcher, *, session_id: str, word: str = "", limit: int = 0
) -> list[str]:
    """Find files of the working folder for a mention."""
    index = peer.hub.live(session_id).conversation.file_index
    return index.search(word, limit or MAX_COMPLETIONS)


def remember(peer: Dispatcher, *, session_id: str, text: str) -> str:
    """Add an entry to the memory of the agent."""
    conversation = peer.hub.live(session_id).conversation
    return as_rpc(lambda: conversation.remember(text))


def config_get(_peer: Dispatcher, *, key: str) -> SettingView:
    """The value of a setting."""
    entry = as_rpc(lambda: ConfigFile.of_home().entry(key))
    return {"key": key, "value": entry.text, "source": entry.source}


def config_set(_peer: Dispatcher, *, key: str, value: str) -> str:
    """Change a setting."""
    as_rpc(lambda: ConfigFile.of_home().set(key, value))
    return key


def shell(peer: Dispatcher, *, command: str, cwd: str = "", session_id: str = "") -> ShellResult:
    """Run a shell command for the user; with a conversation, in its folder, and its next message
    contains the output.
    """
    if session_id:
        conversation = peer.hub.live(session_id).conversation
        output = as_rpc(lambda: conversation.run_shell(command))
        return {"stdout": output.text, "stderr": "", "code": output.code}
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=cwd or None,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=SHELL_SECONDS,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return {"stdout": "", "stderr": f"stopped after {SHELL_SECONDS} s", "code": 124}
    except (OSError, ValueError) as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    texts = [data.decode(errors="replace") for data in (done.stdout, done.stderr)]
    return {"stdout": texts[0], "stderr": texts[1], "code": done.returncode}


def shutdown(peer: Dispatcher) -> bool:
    """End all conversations and exit."""
    peer.hub.leave()
    return True


T = TypeVar("T")


def as_rpc(work: Callable[[], T]) -> T:
    """Run *work*; an error for the user becomes an RpcError with the same message."""
    try:
        return work()
    except (UsageError, CheckpointError) as error:
        raise RpcError(NOTHING_TO_DO, str(error)) from error
