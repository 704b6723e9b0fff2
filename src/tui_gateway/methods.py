"""Every method there is: its name, what it takes, whether it may take long.

docs/reference/rpc.md is compared with this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_gateway import handlers
from tui_gateway.frames import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_gateway.dispatcher import Dispatcher

    Handler = Callable[[Dispatcher, dict[str, Any]], Any]

TYPES: Final = {"text": str, "number": int, "yes or no": bool}


class Param(NamedTuple):
    """One parameter."""

    name: str
    kind: str = "text"
    required: bool = False


class Method(NamedTuple):
    """One method; a slow one does not keep others waiting."""

    name: str
    help: str
    run: Handler
    params: tuple[Param, ...] = ()
    is_slow: bool = False

    def checked(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters, if they are what the method takes."""
        for param in self.params:
            value = params.get(param.name)
            if value is None:
                if param.required:
                    raise RpcError(INVALID_PARAMS, f"`{param.name}` is missing")
                continue
            wanted = TYPES[param.kind]
            if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
                raise RpcError(INVALID_PARAMS, f"`{param.name}` must be a {param.kind}")
        return params


def _method(name: str, help_text: str, run: Handler, *params: str, slow: bool = False) -> Method:
    """A method from words: `name!` is required, `name:number` has a type of its own."""
    found = []
    for word in params:
        label, _, kind = word.partition(":")
        found.append(Param(label.rstrip("!"), kind or "text", label.endswith("!")))
    return Method(name, help_text, run, tuple(found), slow)


LIVE: Final = "session_id!"
METHODS: Final = {
    one.name: one
    for one in (
        _method("session.create", "begin a conversation", handlers.create, "cwd", "model",
                "source", slow=True),
        _method("session.list", "stored conversations, newest first", handlers.listed,
                "limit:number"),
        _method("session.most_recent", "the latest stored conversation", handlers.most_recent),
        _method("session.resume", "open a stored conversation", handlers.resume, LIVE, "cwd",
                "model", slow=True),
        _method("session.activate", "look at an open conversation again", handlers.activate,
                LIVE),
        _method("session.active_list", "conversations that are open here", handlers.active_list),
        _method("session.close", "end an open conversation", handlers.close, LIVE, slow=True),
        _method("session.delete", "move a stored conversation into the trash", handlers.delete,
                LIVE),
        _method("session.title", "show or set the title", handlers.title, LIVE, "title"),
        _method("session.history", "everything said so far", handlers.history, LIVE),
        _method("session.usage", "tokens of the conversation", handlers.usage, LIVE),
        _method("session.status", "what is going on", handlers.status, LIVE),
        _method("session.undo", "take back the last exchanges", handlers.undo, LIVE,
                "count:number"),
        _method("session.redo", "bring back what an undo took", handlers.redo, LIVE),
        _method("session.retry", "ask the last question again", handlers.retry, LIVE),
        _method("session.branch", "go on in a second conversation", handlers.branch, LIVE, "name",
                slow=True),
        _method("session.compress", "sum up what was said, to make room", handlers.compress,
                LIVE, "focus_topic", slow=True),
        _method("session.interrupt", "stop the running turn", handlers.interrupt, LIVE),
        _method("session.steer", "say something to the running turn", handlers.steer, LIVE,
                "text!"),
        _method("session.save", "write the conversation to a file", handlers.save, LIVE,
                "path", slow=True),
        _method("prompt.submit", "say something", handlers.submit, LIVE, "text!"),
        _method("approval.respond", "answer whether a command may run", handlers.approve, LIVE,
                "choice!", "request_id"),
        _method("clarify.respond", "answer a question of the agent", handlers.clarify, LIVE,
                "answer!", "request_id"),
        _method("commands.catalog", "the commands inside a conversation", handlers.catalog),
        _method("command.dispatch", "carry out a command", handlers.dispatch, LIVE, "name!",
                "arg", slow=True),
        _method("complete.slash", "what a command could become", handlers.complete_slash,
                "text!"),
        _method("complete.path", "what a path could become", handlers.complete_path, "word!",
                "cwd"),
        _method("config.get", "the value of a setting", handlers.config_get, "key!"),
        _method("config.set", "change a setting", handlers.config_set, "key!", "value!"),
        _method("shell.exec", "run a command for the person", handlers.shell, "command!", "cwd",
                slow=True),
        _method("gateway.shutdown", "end every conversation and leave", handlers.shutdown),
    )
}  # fmt: skip
