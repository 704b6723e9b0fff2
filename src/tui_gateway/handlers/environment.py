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
from tui_gateway.summaries import ModelSummary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.frames import RpcParams

MAX_COMPLETIONS: Final = 50
SHELL_SECONDS: Final = 60


def surface_of(params: RpcParams) -> Surface:
    """The front end that a client names; by default the terminal UI."""
    name = (params.surface or "screen").upper()
    if name not in Surface.__members__:
        raise RpcError(INVALID_PARAMS, f"unknown surface {params.surface!r}")
    return Surface[name]


def complete_slash(_peer: Dispatcher, params: RpcParams) -> object:
    text = params.text.removeprefix("/")
    names = [
        f"/{command.name}"
        for command in slash_commands.listed_commands(surface_of(params), params.folder)
        if command.name.startswith(text)
    ]
    return {"items": names, "replace_from": 0}


def complete_path(_peer: Dispatcher, params: RpcParams) -> object:
    word = os.path.expanduser(params.word)  # noqa: PTH111 - text, not a path
    base = Path(params.cwd or ".")
    folder, _, start = word.rpartition("/")
    parent = base / folder if folder or not word.startswith("/") else Path("/")
    try:
        matches = sorted(path for path in parent.iterdir() if path.name.startswith(start))
    except (OSError, ValueError):
        return {"items": []}
    prefix = f"{folder}/" if "/" in word else ""
    visible = [path for path in matches if start or not path.name.startswith(".")]
    return {
        "items": [
            f"{prefix}{path.name}{'/' if path.is_dir() else ''}"
            for path in visible[:MAX_COMPLETIONS]
        ]
    }


def update_environment(_peer: Dispatcher, params: RpcParams) -> object:
    """Take over the keys and addresses of a client that was started after this process."""
    given = parse_object(params.variables)
    if given is None or not all(isinstance(value, str) for value in given.values()):
        raise RpcError(INVALID_PARAMS, "`variables` must be a JSON object of strings")
    unknown = sorted(given.keys() - client_environment.known_names())
    if unknown:
        raise RpcError(INVALID_PARAMS, f"not a variable of a model provider: {unknown[0]}")
    texts = {name: str(value) for name, value in given.items()}
    return {"changed": client_environment.take_over(texts)}


def models(_peer: Dispatcher, params: RpcParams) -> object:
    from hermes_agent.providers import catalog  # noqa: PLC0415 - needs HTTP, for this only

    endpoints = catalog.known_endpoints(ConfigFile.of_home().settings())
    lists = catalog.ModelCatalog().load(endpoints)
    found = catalog.search(catalog.all_models(lists), params.search)
    return {
        "models": [
            ModelSummary(
                model.name, model.provider, model.window, model.input_price, model.output_price
            )
            for model in found
        ],
        "problems": [each.problem for each in lists if each.problem],
    }


def complete_file(peer: Dispatcher, params: RpcParams) -> object:
    index = peer.hub.live(params.session_id).conversation.file_index
    return {"items": index.search(params.word, params.limit or MAX_COMPLETIONS)}


def remember(peer: Dispatcher, params: RpcParams) -> object:
    conversation = peer.hub.live(params.session_id).conversation
    return {"path": as_rpc(lambda: conversation.remember(params.text))}


def config_get(_peer: Dispatcher, params: RpcParams) -> object:
    entry = as_rpc(lambda: ConfigFile.of_home().entry(params.key))
    return {"key": params.key, "value": entry.text, "source": entry.source}


def config_set(_peer: Dispatcher, params: RpcParams) -> object:
    as_rpc(lambda: ConfigFile.of_home().set(params.key, params.value))
    return {"key": params.key}


def shell(peer: Dispatcher, params: RpcParams) -> object:
    if params.session_id:
        conversation = peer.hub.live(params.session_id).conversation
        output = as_rpc(lambda: conversation.run_shell(params.command))
        return {"stdout": output.text, "stderr": "", "code": output.code}
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", params.command],
            cwd=params.cwd or None,
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


def shutdown(peer: Dispatcher, _params: RpcParams) -> object:
    peer.hub.leave()
    return {"closing": True}


T = TypeVar("T")


def as_rpc(work: Callable[[], T]) -> T:
    """Run *work*; an error for the user becomes an RpcError with the same message."""
    try:
        return work()
    except (UsageError, CheckpointError) as error:
        raise RpcError(NOTHING_TO_DO, str(error)) from error
