"""The table of RPC methods and events: name, parameters, results, speed.

docs/reference/rpc.md and docs/reference/rpc.openrpc.json are compared with this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_gateway import openrpc
from tui_gateway.frames import INVALID_PARAMS, RpcError, RpcParams
from tui_gateway.handlers import checkpoints, conversation, environment, sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.json_values import JsonObject
    from tui_gateway.dispatcher import Dispatcher

    Handler = Callable[[Dispatcher, RpcParams], object]

TYPES: Final = {"text": str, "number": int, "yes or no": bool}


class Param(NamedTuple):
    """One parameter."""

    name: str
    kind: str = "text"
    required: bool = False


class Method(NamedTuple):
    """A method; slow ones run in the thread pool."""

    name: str
    help: str
    run: Handler
    params: tuple[Param, ...]
    returns: tuple[str, ...]
    is_slow: bool = False

    def validate(self, params: JsonObject) -> RpcParams:
        """Validate the parameters; unknown ones are ignored."""
        given: dict[str, Any] = {}
        for param in self.params:
            value = params.get(param.name)
            if value is None:
                if param.required:
                    raise RpcError(INVALID_PARAMS, f"`{param.name}` is missing")
                continue
            expected = TYPES[param.kind]
            if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
                raise RpcError(INVALID_PARAMS, f"`{param.name}` must be a {param.kind}")
            given[param.name] = value
        return RpcParams(**given)


def _method(
    name: str, help_text: str, run: Handler, params: str, returns: str, *, slow: bool = False
) -> Method:
    """A method from a compact notation: `name!` is required, `name:number` has a type."""
    parsed = []
    for spec in params.split():
        label, _, kind = spec.partition(":")
        parsed.append(
            Param(label.rstrip("!"), kind.replace("_", " ") or "text", label.endswith("!"))
        )
    return Method(name, help_text, run, tuple(parsed), tuple(returns.split()), slow)


def _discover(_peer: Dispatcher, _params: RpcParams) -> object:
    return openrpc.openrpc(METHODS, EVENTS)


OPENED_FIELDS: Final = (
    "session_id stored_session_id message_count messages info running started_at inflight unread "
    "unread_images notice"
)
USAGE_FIELDS: Final = "input output cache_read cache_write reasoning cost_usd"
INFO_FIELDS: Final = (
    "model window context_tokens cwd mode sandbox title running stored_session_id message_count "
    "usage"
)
METHODS: Final = {
    method.name: method
    for method in (
        _method("session.create", "start a conversation", sessions.create,
                "session_id cwd model source title mode allow mcp_servers max_turns:number "
                "max_output_tokens:number effort close_on_disconnect:yes_or_no",
                OPENED_FIELDS,
                slow=True),
        _method("session.list", "stored conversations, newest first", sessions.listed,
                "limit:number offset:number search cwd", "sessions", slow=True),
        _method("session.most_recent", "the latest stored conversation", sessions.most_recent,
                "cwd", "session_id id title preview started_at last_active message_count source "
                "cwd", slow=True),
        _method("session.resume", "open a stored conversation, or one that is open already",
                sessions.resume,
                "session_id! cwd model source mode allow mcp_servers max_turns:number "
                "max_output_tokens:number effort close_on_disconnect:yes_or_no",
                f"{OPENED_FIELDS} resumed", slow=True),
        _method("session.activate", "receive the events of an open conversation", sessions.activate,
                "session_id!", OPENED_FIELDS),
        _method("session.active_list", "list open conversations", sessions.active_list,
                "", "sessions"),
        _method("session.close", "close a conversation, unless another client has it open",
                sessions.close, "session_id! unless_running:yes_or_no", "closed", slow=True),
        _method("session.delete", "move a stored conversation to the trash", sessions.delete,
                "session_id!", "deleted"),
        _method("session.title", "show or set the title", conversation.title,
                "session_id! title", "title"),
        _method("session.history", "return all messages", conversation.history,
                "session_id!", "messages"),
        _method("session.usage", "tokens of the conversation", conversation.usage,
                "session_id!", USAGE_FIELDS),
        _method("session.status", "the state of a conversation", conversation.status, "session_id!",
                f"{INFO_FIELDS} status"),
        _method("session.cwd.set", "change the working folder", conversation.set_folder,
                "session_id! cwd!", "cwd"),
        _method("session.reload", "use the settings, the trusted files of the project and the keys "
                "as they are now", conversation.reload, "session_id!", INFO_FIELDS, slow=True),
        _method("session.prompts", "list the user's messages", conversation.prompts,
                "session_id!", "prompts"),
        _method("session.rewind", "undo a message and everything after it",
                conversation.rewind, "session_id! message_id!:number", "text"),
        _method("session.tree", "the conversation and its branches", conversation.tree,
                "session_id!", "sessions"),
        _method("session.versions", "the prompts that have other versions in branches",
                conversation.versions, "session_id!", "prompts", slow=True),
        _method("session.todo", "the list of steps that the agent keeps", conversation.todo,
                "session_id!", "items", slow=True),
        _method("session.undo", "undo the last exchanges", conversation.undo,
                "session_id! count:number", "removed"),
        _method("session.redo", "restore what an undo removed", conversation.redo,
                "session_id!", "restored"),
        _method("session.retry", "ask the last question again", conversation.retry,
                "session_id!", "status text"),
        _method("session.branch", "continue in a new conversation, from here or from a prompt",
                conversation.branch, "session_id! name message_id:number stay:yes_or_no "
                "keep_images:yes_or_no",
                "session_id stored_session_id parent", slow=True),
        _method("session.compress", "summarize older messages", conversation.compress,
                "session_id! focus_topic", "before after summary", slow=True),
        _method("session.interrupt", "interrupt the turn; send text if given",
                conversation.interrupt, "session_id! text", "interrupted"),
        _method("session.steer", "steer the turn, or send now; with `images` (files, one per "
                "line) as session.queue", conversation.steer, "session_id! text! images", "status"),
        _method("session.queue", "send after the turn, or now; `images` are files, one per line",
                conversation.queue, "session_id! text! images", "status"),
        _method("session.save", "write the conversation to a file", conversation.save,
                "session_id! path within_permissions:yes_or_no", "file", slow=True),
        _method("checkpoints.list", "what turns and restores changed in files, newest first",
                checkpoints.listed, "session_id!", "checkpoints", slow=True),
        _method("checkpoints.diff", "changes as a unified diff; `scope` is all, last or a number",
                checkpoints.diff, "session_id! scope", "diff numbers", slow=True),
        _method("checkpoints.preview", "what a restore would change: of a checkpoint, of a prompt "
                "and all later ones, or of the last exchanges", checkpoints.preview,
                "session_id! number:number message_id:number count:number "
                "within_permissions:yes_or_no", "files diff numbers", slow=True),
        _method("checkpoints.restore", "restore files; `paths` limits it, `force` names files to "
                "overwrite that were changed since, one per line; `within_permissions` refuses "
                "files that the agent may not write unasked", checkpoints.restore,
                "session_id! number:number message_id:number count:number paths force "
                "within_permissions:yes_or_no",
                "restored refused numbers output", slow=True),
        _method("prompt.submit", "send a message", conversation.submit, "session_id! text!",
                "status"),
        _method("image.attach", "attach an image to the next message",
                conversation.attach_image, "session_id! path!", "attached count"),
        _method("image.detach", "remove all attached images, or the one of which "
                "`image.attach` returned the name", conversation.detach_image,
                "session_id! name", "count"),
        _method("session.permissions", "show or change the permission mode",
                conversation.permissions, "session_id! mode", "mode sandbox problem rules"),
        _method("approval.respond", "answer an approval prompt", conversation.approve,
                "session_id! choice! request_id rule reason", "resolved"),
        _method("clarify.respond", "answer a question of the agent", conversation.clarify,
                "session_id! answer! request_id", "resolved"),
        _method("secret.respond", "provide a requested secret",
                conversation.secret, "session_id! value! request_id", "resolved"),
        _method("commands.catalog", "list the slash commands of a `surface`: screen, page or "
                "editor", conversation.catalog, "cwd surface", "commands"),
        _method("command.dispatch", "run a slash command", conversation.dispatch,
                "session_id! name! arg surface",
                "type message output changed session_id", slow=True),
        _method("complete.slash", "complete a slash command", environment.complete_slash,
                "text! cwd surface", "items replace_from"),
        _method("complete.path", "complete a path", environment.complete_path,
                "word! cwd", "items"),
        _method("model.list", "the models of all providers whose key is known",
                environment.models, "search", "models problems", slow=True),
        _method("complete.file", "find files of the working folder for a mention",
                environment.complete_file, "session_id! word limit:number", "items", slow=True),
        _method("config.get", "the value of a setting", environment.config_get, "key!",
                "key value source"),
        _method("config.set", "change a setting", environment.config_set, "key! value!",
                "key"),
        _method("environment.update", "use API keys and addresses of the client's environment, a "
                "JSON object in `variables`; they are kept in memory only",
                environment.update_environment, "variables!", "changed"),
        _method("shell.exec", "run a shell command for the user; with a conversation, in its "
                "folder, and its next message contains the output", environment.shell,
                "command! cwd session_id", "stdout stderr code", slow=True),
        _method("memory.add", "add an entry to the memory of the agent", environment.remember,
                "session_id! text!", "path"),
        _method("gateway.shutdown", "end all conversations and exit", environment.shutdown,
                "", "closing"),
        _method("rpc.discover", "return the OpenRPC document", _discover, "",
                "openrpc info methods x-events"),
    )
}  # fmt: skip


class Event(NamedTuple):
    """An event that the server sends to clients."""

    name: str
    help: str
    payload: tuple[str, ...]


def _event(name: str, help_text: str, payload: str = "") -> Event:
    return Event(name, help_text, tuple(payload.split()))


EVENTS: Final = {
    event.name: event
    for event in (
        _event("gateway.ready", "the first frame", "version methods"),
        _event("gateway.leaving", "the server is shutting down"),
        _event("session.changed", "another client changed the history; reload it"),
        _event("session.info", "the conversation's metadata has changed", INFO_FIELDS),
        _event("message.start", "a turn starts with this message; `images` are the files "
               "of its pictures", "text images"),
        _event("message.attached", "what is attached to the message that has started the turn",
               "items"),
        _event("message.delta", "more of the answer", "text"),
        _event("reasoning.delta", "more of the model's reasoning", "text"),
        _event("message.complete", "the turn is over and stored; `status` is complete, "
               "interrupted or error, `unread` is pending input of this client that is returned, "
               "`unread_images` are the files of its images; "
               "`problem` is length, empty, filtered, step_limit, repeated_calls or nothing, "
               "`notice` its text",
               "text status error usage unread unread_images problem notice"),
        _event("message.stored", "a message of the turn is stored; `role` is user, assistant or "
               "tool; `usage` is what an answer took: tokens, cost and seconds",
               "message_id role usage"),
        _event("steer.read", "the agent has read the steering input, as one message", "text"),
        _event("input.waiting", "the input of all clients that waits for the turn has changed",
               "texts"),
        _event("tool.start", "a tool runs", "tool_id name context args_text before"),
        _event("tool.output", "output of the running tool", "tool_id text"),
        _event("tool.complete", "the result of the tool", "tool_id name result duration_s status"),
        _event("status.update", "a status message; `kind` is status, retrying, review or "
               "continued (another answer of the turn follows), `seconds` the time to the next "
               "attempt", "kind text seconds"),
        _event("approval.request", "a command needs approval",
               "command description allow_permanent folder rules risky_lines diff tool_id "
               "request_id"),
        _event("clarify.request", "a question of the agent", "question choices request_id"),
        _event("secret.request", "a key or a password is needed", "prompt env_var request_id"),
        _event("question.closed", "a question was answered or is no longer open",
               "request_id"),
    )
}  # fmt: skip
