"""API keys that are set in a client's environment only: the daemon was started before.

They are handed to the daemon over its private connection and stay in its memory. The variables of
a provider change together: a key must not be sent to the address of another one.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from hermes_agent.providers.apis import variable_groups
from hermes_core.json_values import list_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_gateway.client import RpcClient


def share_keys(client: RpcClient) -> tuple[str, ...]:
    """Hand the keys of this process to the daemon; the names of those that it did not have."""
    given = {
        name: os.environ[name]
        for group in variable_groups()
        if any(os.environ.get(key) for key in group.keys)
        for name in group.names
        if os.environ.get(name)
    }
    if not given:
        return ()
    changed = client.call("environment.update", variables=json.dumps(given))
    return tuple(map(str, list_in(changed, "changed")))


def take_over(given: Mapping[str, str]) -> list[str]:
    """Set the variables of each provider whose key is given; the keys of those that changed."""
    changed: list[str] = []
    for group in variable_groups():
        keys = [key for key in group.keys if given.get(key)]
        wanted = {name: given.get(name) for name in group.names}
        if not keys or wanted == {name: os.environ.get(name) for name in group.names}:
            continue
        # Until the address is right, there is no key.
        for name in group.keys:
            os.environ.pop(name, None)
        for name in (*group.others, *group.keys):
            os.environ.pop(name, None)
            if given.get(name):
                os.environ[name] = given[name]
        changed += keys
    return changed


def known_names() -> set[str]:
    """The variables that a client may give."""
    return {name for group in variable_groups() for name in group.names}
