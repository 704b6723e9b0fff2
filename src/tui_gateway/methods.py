"""The table of RPC methods: their handlers, whose signatures are the parameters and results.

docs/reference/rpc.md and docs/reference/rpc.openrpc.json are generated from it.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_gateway import protocol
from tui_gateway.frames import INVALID_PARAMS, RpcError
from tui_gateway.handlers import checkpoints, conversation, environment, sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.json_values import JsonObject
    from tui_gateway.dispatcher import Dispatcher

TYPES: Final = {"str": str, "int": int, "bool": bool}
TYPE_NAMES: Final = {"str": "text", "int": "number", "bool": "yes or no"}


class Param(NamedTuple):
    """One parameter; its kind is a type of Python."""

    name: str
    kind: str
    is_required: bool


class Method(NamedTuple):
    """A method; *field* is the name of a result that is not an object."""

    name: str
    run: Callable[..., object]
    field: str = ""
    is_slow: bool = False  # runs in the thread pool

    @property
    def help(self) -> str:
        """The docstring of the handler."""
        return inspect.cleandoc(self.run.__doc__ or "")

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters."""
        return params_of(self.run)

    def call(self, peer: Dispatcher, given: JsonObject) -> object:
        """Validate the parameters and call the handler; unknown ones are ignored."""
        valid: dict[str, Any] = {}
        for param in self.params:
            value = given.get(param.name)
            if value is None:
                if param.is_required:
                    raise RpcError(INVALID_PARAMS, f"`{param.name}` is missing")
                continue
            expected = TYPES[param.kind]
            if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
                kind = TYPE_NAMES[param.kind]
                raise RpcError(INVALID_PARAMS, f"`{param.name}` must be a {kind}")
            valid[param.name] = value
        result = self.run(peer, **valid)
        return {self.field: result} if self.field else result


@functools.cache
def params_of(handler: Callable[..., object]) -> tuple[Param, ...]:
    """The keyword parameters of a handler, and those of the class that it unpacks."""
    found: list[Param] = []
    for item in list(inspect.signature(handler).parameters.values())[1:]:
        if item.kind is item.VAR_KEYWORD:
            bundle = getattr(protocol, item.annotation.removeprefix("Unpack[").removesuffix("]"))
            names = bundle.__annotations__.items()
            found += [Param(name, kind.__forward_arg__, is_required=False) for name, kind in names]
        else:
            is_required = item.default is item.empty
            found.append(Param(item.name, item.annotation, is_required))
    return tuple(found)


def _discover(_peer: Dispatcher) -> JsonObject:
    """Return the OpenRPC document."""
    from tui_gateway import openrpc  # noqa: PLC0415 - for this method only

    return openrpc.document(METHODS)


METHODS: Final = {
    method.name: method
    for method in (
        Method("session.create", sessions.create, is_slow=True),
        Method("session.list", sessions.listed, "sessions", is_slow=True),
        Method("session.most_recent", sessions.most_recent, is_slow=True),
        Method("session.resume", sessions.resume, is_slow=True),
        Method("session.activate", sessions.activate),
        Method("session.active_list", sessions.active_list, "sessions"),
        Method("session.close", sessions.close, "closed", is_slow=True),
        Method("session.delete", sessions.delete, "deleted"),
        Method("session.title", conversation.title, "title"),
        Method("session.history", conversation.history, "messages"),
        Method("session.usage", conversation.usage),
        Method("session.status", conversation.status),
        Method("session.cwd.set", conversation.set_folder, "cwd"),
        Method("session.reload", conversation.reload, is_slow=True),
        Method("session.prompts", conversation.prompts, "prompts"),
        Method("session.rewind", conversation.rewind, "text"),
        Method("session.tree", conversation.tree, "sessions"),
        Method("session.versions", conversation.versions, "prompts", is_slow=True),
        Method("session.todo", conversation.todo, "items", is_slow=True),
        Method("session.undo", conversation.undo, "removed"),
        Method("session.redo", conversation.redo, "restored"),
        Method("session.retry", conversation.retry),
        Method("session.branch", conversation.branch, is_slow=True),
        Method("session.compress", conversation.compress, is_slow=True),
        Method("session.interrupt", conversation.interrupt, "interrupted"),
        Method("session.steer", conversation.steer, "status"),
        Method("session.queue", conversation.queue, "status"),
        Method("session.save", conversation.save, "file", is_slow=True),
        Method("checkpoints.list", checkpoints.listed, "checkpoints", is_slow=True),
        Method("checkpoints.diff", checkpoints.diff, is_slow=True),
        Method("checkpoints.preview", checkpoints.preview, is_slow=True),
        Method("checkpoints.restore", checkpoints.restore, is_slow=True),
        Method("prompt.submit", conversation.submit, "status"),
        Method("image.attach", conversation.attach_image),
        Method("image.detach", conversation.detach_image, "count"),
        Method("session.permissions", conversation.permissions),
        Method("approval.respond", conversation.approve, "resolved"),
        Method("clarify.respond", conversation.clarify, "resolved"),
        Method("secret.respond", conversation.secret, "resolved"),
        Method("commands.catalog", conversation.catalog, "commands"),
        Method("command.dispatch", conversation.dispatch, is_slow=True),
        Method("complete.slash", environment.complete_slash),
        Method("complete.path", environment.complete_path, "items"),
        Method("model.list", environment.models, is_slow=True),
        Method("complete.file", environment.complete_file, "items", is_slow=True),
        Method("config.get", environment.config_get),
        Method("config.set", environment.config_set, "key"),
        Method("environment.update", environment.update_environment, "changed"),
        Method("shell.exec", environment.shell, is_slow=True),
        Method("memory.add", environment.remember, "path"),
        Method("gateway.shutdown", environment.shutdown, "closing"),
        Method("rpc.discover", _discover),
    )
}
