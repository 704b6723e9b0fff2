"""What each method does. A handler gets the dispatcher and checked parameters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_cli import slash
from hermes_cli.talking import Wish
from hermes_core.config_file import ConfigFile
from hermes_core.errors import HermesError, UsageError
from tui_gateway.frames import (
    INVALID_PARAMS,
    LIVE_SESSION,
    NO_AGENT,
    NO_STORED_SESSION,
    NOTHING_TO_DO,
    RpcError,
)
from tui_gateway.questions import CHOICES

if TYPE_CHECKING:
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.live import Live

    Params = dict[str, Any]

LISTED: Final = 200
MOST_PATHS: Final = 50
SHELL_SECONDS: Final = 60
FIELDS: Final = ("id", "title", "preview", "started_at", "message_count", "source", "last_active")


def create(server: Dispatcher, params: Params) -> Any:
    return _opened(_open(server, params, None))


def resume(server: Dispatcher, params: Params) -> Any:
    try:
        found = server.db.resolve_resume_session_id(server.db.resolve(params["session_id"]))
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error
    known = server.live_of(found)
    live = known or _open(server, params, found)
    return {**_opened(live), "resumed": found, "inflight": live.shown if live.is_running else None}


def _open(server: Dispatcher, params: Params, session_id: str | None) -> Live:
    cwd = Path(params["cwd"]).expanduser() if params.get("cwd") else None
    wish = Wish(session_id, params.get("model") or "", params.get("source") or "tui", "tui", cwd)
    try:
        return server.open(wish)
    except HermesError as error:
        raise RpcError(NO_AGENT, str(error)) from error


def _opened(live: Live) -> dict[str, Any]:
    messages = live.messages()
    return {
        "session_id": live.id,
        "stored_session_id": live.desk.session_id,
        "message_count": len(messages),
        "messages": messages,
        "info": live.info(),
        "running": live.is_running,
        "started_at": live.started_at,
    }


def listed(server: Dispatcher, params: Params) -> Any:
    limit = params.get("limit") or LISTED
    rows = server.db.list_sessions_rich(limit=limit, order_by_last_active=True)
    return {"sessions": [{name: row.get(name) for name in FIELDS} for row in rows]}


def most_recent(server: Dispatcher, params: Params) -> Any:
    rows = listed(server, {**params, "limit": 1})["sessions"]
    return {"session_id": rows[0]["id"] if rows else None}


def activate(server: Dispatcher, params: Params) -> Any:
    live = server.live(params["session_id"])
    return {**_opened(live), "inflight": live.shown if live.is_running else None}


def active_list(server: Dispatcher, _params: Params) -> Any:
    return {
        "sessions": [
            {"session_id": live.id, "status": "working" if live.is_running else "idle",
             **live.info()}
            for live in server.all_live()
        ]
    }  # fmt: skip


def close(server: Dispatcher, params: Params) -> Any:
    server.close(server.live(params["session_id"]), "tui_close")
    return {"closed": True}


def delete(server: Dispatcher, params: Params) -> Any:
    try:
        found = server.db.resolve(params["session_id"])
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error
    if server.live_of(found) is not None:
        raise RpcError(LIVE_SESSION, "this conversation is open; close it first")
    return {"deleted": server.db.delete_session(found)}


def title(server: Dispatcher, params: Params) -> Any:
    live = server.live(params["session_id"])
    return {"title": _told(lambda: live.desk.title(params.get("title") or ""))}


def history(server: Dispatcher, params: Params) -> Any:
    return {"messages": server.live(params["session_id"]).messages()}


def usage(server: Dispatcher, params: Params) -> Any:
    row = server.live(params["session_id"]).desk.row()
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    return {name: row.get(f"{name}_tokens") or 0 for name in names}


def status(server: Dispatcher, params: Params) -> Any:
    return server.live(params["session_id"]).info()


def undo(server: Dispatcher, params: Params) -> Any:
    desk = server.idle(params["session_id"]).desk
    removed = _told(lambda: desk.undo(params.get("count") or 1))
    return {"removed": removed}


def redo(server: Dispatcher, params: Params) -> Any:
    return {"restored": _told(server.idle(params["session_id"]).desk.redo)}


def retry(server: Dispatcher, params: Params) -> Any:
    live = server.idle(params["session_id"])
    text = _told(live.desk.take_back_last)
    live.submit(text)
    return {"status": "streaming", "text": text}


def branch(server: Dispatcher, params: Params) -> Any:
    live = server.idle(params["session_id"])
    parent = live.desk.session_id
    found = _told(lambda: live.desk.branch(params.get("name") or ""))
    return {"session_id": live.id, "stored_session_id": found, "parent": parent}


def compress(server: Dispatcher, params: Params) -> Any:
    desk = server.idle(params["session_id"]).desk
    found = _told(lambda: desk.compress(params.get("focus_topic") or ""))
    return {"before": found.before, "after": found.after, "summary": found.summary}


def interrupt(server: Dispatcher, params: Params) -> Any:
    return {"interrupted": server.live(params["session_id"]).interrupt()}


def steer(server: Dispatcher, params: Params) -> Any:
    live = server.live(params["session_id"])
    if not live.is_running:
        return {"status": "rejected"}
    live.desk.agent.steer(params["text"])
    return {"status": "queued"}


def save(server: Dispatcher, params: Params) -> Any:
    live = server.live(params["session_id"])
    name = f"{live.desk.session_id}.md"
    path = Path(params.get("path") or live.desk.agent.cwd / name).expanduser()
    lines = [f"**{one['role']}**\n\n{one['content'] or ''}\n" for one in live.messages()]
    try:
        path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    except OSError as error:
        raise RpcError(INVALID_PARAMS, f"{path}: {error.strerror}") from error
    return {"file": str(path)}


def submit(server: Dispatcher, params: Params) -> Any:
    server.live(params["session_id"]).submit(params["text"])
    return {"status": "streaming"}


def approve(server: Dispatcher, params: Params) -> Any:
    if params["choice"] not in CHOICES:
        raise RpcError(INVALID_PARAMS, f"`choice` must be one of {', '.join(CHOICES)}")
    return _answer(server, params, params["choice"])


def clarify(server: Dispatcher, params: Params) -> Any:
    return _answer(server, params, params["answer"])


def _answer(server: Dispatcher, params: Params, text: str) -> Any:
    questions = server.live(params["session_id"]).questions
    return {"resolved": questions.answer(params.get("request_id") or "", text)}


def catalog(_server: Dispatcher, _params: Params) -> Any:
    return {
        "commands": [
            {"name": f"/{one.name}", "hint": one.hint, "help": one.help,
             "aliases": [f"/{alias}" for alias in one.aliases]}
            for one in slash.COMMANDS
        ]
    }  # fmt: skip


def dispatch(server: Dispatcher, params: Params) -> Any:
    live = server.idle(params["session_id"])
    name = params["name"].removeprefix("/")
    outcome = _told(lambda: slash.run(live.desk, f"/{name} {params.get('arg') or ''}".rstrip()))
    if outcome.say:
        return {"type": "send", "message": outcome.say}
    if outcome.leave:
        return {"type": "leave"}
    return {"type": "exec", "output": outcome.text}


def complete_slash(_server: Dispatcher, params: Params) -> Any:
    text = params["text"].removeprefix("/")
    names = [f"/{one.name}" for one in slash.COMMANDS if one.name.startswith(text)]
    return {"items": names, "replace_from": 0}


def complete_path(_server: Dispatcher, params: Params) -> Any:
    word = os.path.expanduser(params["word"])  # noqa: PTH111 - the text matters, not the path
    base = Path(params.get("cwd") or ".")
    folder, _, start = word.rpartition("/")
    place = base / folder if folder or not word.startswith("/") else Path("/")
    try:
        found = sorted(one for one in place.iterdir() if one.name.startswith(start))
    except OSError:
        return {"items": []}
    prefix = f"{folder}/" if "/" in word else ""
    return {
        "items": [f"{prefix}{one.name}{'/' if one.is_dir() else ''}" for one in found[:MOST_PATHS]]
    }


def config_get(_server: Dispatcher, params: Params) -> Any:
    entry = _told(lambda: ConfigFile.of_home().entry(params["key"]))
    return {"key": params["key"], "value": entry.text, "source": entry.source}


def config_set(_server: Dispatcher, params: Params) -> Any:
    _told(lambda: ConfigFile.of_home().set(params["key"], params["value"]))
    return {"key": params["key"]}


def shell(_server: Dispatcher, params: Params) -> Any:
    try:
        done = subprocess.run(
            ["sh", "-c", params["command"]],
            cwd=params.get("cwd") or None,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=SHELL_SECONDS,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return {"stdout": "", "stderr": f"stopped after {SHELL_SECONDS} s", "code": 124}
    except OSError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    texts = [data.decode(errors="replace") for data in (done.stdout, done.stderr)]
    return {"stdout": texts[0], "stderr": texts[1], "code": done.returncode}


def shutdown(server: Dispatcher, _params: Params) -> Any:
    server.leave()
    return {"closing": True}


def _told(work: Any) -> Any:
    """Do *work*; what a person did wrong is told in the words of the error."""
    try:
        return work()
    except UsageError as error:
        raise RpcError(NOTHING_TO_DO, str(error)) from error
