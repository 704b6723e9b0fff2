"""An open conversation: say something, take it back, go another way, answer its questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_cli import slash
from hermes_core.errors import UsageError
from tui_gateway.frames import BUSY, INVALID_PARAMS, NOTHING_TO_DO, RpcError
from tui_gateway.live import usage as usage_of
from tui_gateway.questions import CHOICES

if TYPE_CHECKING:
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.live import Live

    Params = dict[str, Any]


def submit(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    live.submit(params["text"])
    return {"status": "streaming"}


def interrupt(peer: Dispatcher, params: Params) -> Any:
    return {"interrupted": _live(peer, params).interrupt(params.get("text") or "")}


def steer(peer: Dispatcher, params: Params) -> Any:
    return {"status": "queued" if _live(peer, params).steer(params["text"]) else "rejected"}


def queue(peer: Dispatcher, params: Params) -> Any:
    is_queued = _live(peer, params).say_later(params["text"])
    return {"status": "queued" if is_queued else "rejected"}


def title(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    return {"title": told(lambda: live.desk.title(params.get("title") or ""))}


def history(peer: Dispatcher, params: Params) -> Any:
    return {"messages": _live(peer, params).messages()}


def usage(peer: Dispatcher, params: Params) -> Any:
    return usage_of(_live(peer, params).desk.row())


def status(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    return {**live.info(), "status": live.status()}


def set_folder(peer: Dispatcher, params: Params) -> Any:
    desk = peer.hub.idle(params["session_id"]).desk
    return {"cwd": str(told(lambda: desk.move_to(Path(params["cwd"]).expanduser())))}


def attach_image(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    picture = told(lambda: live.desk.attach(Path(params["path"]).expanduser()))
    return {"attached": picture.name, "count": len(live.desk.pictures)}


def detach_image(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    live.desk.pictures.clear()
    return {"count": 0}


# Back and forth


def undo(peer: Dispatcher, params: Params) -> Any:
    desk = peer.hub.idle(params["session_id"]).desk
    return {"removed": told(lambda: desk.undo(params.get("count") or 1))}


def redo(peer: Dispatcher, params: Params) -> Any:
    return {"restored": told(peer.hub.idle(params["session_id"]).desk.redo)}


def retry(peer: Dispatcher, params: Params) -> Any:
    live = peer.hub.idle(params["session_id"])
    text = told(live.desk.take_back_last)
    live.submit(text)
    return {"status": "streaming", "text": text}


def branch(peer: Dispatcher, params: Params) -> Any:
    live = peer.hub.idle(params["session_id"])
    parent = live.desk.session_id
    found = told(lambda: live.desk.branch(params.get("name") or "", params.get("message_id") or 0))
    live.emit("session.info", live.info())
    return {"session_id": live.id, "stored_session_id": found, "parent": parent}


def prompts(peer: Dispatcher, params: Params) -> Any:
    found = _live(peer, params).desk.prompts()
    return {"prompts": [{"message_id": one.message_id, "text": one.text} for one in found]}


def rewind(peer: Dispatcher, params: Params) -> Any:
    desk = peer.hub.idle(params["session_id"]).desk
    return {"text": told(lambda: desk.back_to(params["message_id"]))}


def tree(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    names = ("id", "title", "parent_session_id", "started_at", "message_count", "end_reason")
    rows = told(live.desk.family)
    return {"sessions": [{name: row.get(name) for name in names} for row in rows]}


def compress(peer: Dispatcher, params: Params) -> Any:
    desk = peer.hub.idle(params["session_id"]).desk
    found = told(lambda: desk.compress(params.get("focus_topic") or ""))
    return {"before": found.before, "after": found.after, "summary": found.summary}


def save(peer: Dispatcher, params: Params) -> Any:
    return {"file": str(told(lambda: _live(peer, params).desk.save(params.get("path") or "")))}


# Answers


def approve(peer: Dispatcher, params: Params) -> Any:
    if params["choice"] not in CHOICES:
        raise RpcError(INVALID_PARAMS, f"`choice` must be one of {', '.join(CHOICES)}")
    return _answer(peer, params, params["choice"])


def clarify(peer: Dispatcher, params: Params) -> Any:
    return _answer(peer, params, params["answer"])


def secret(peer: Dispatcher, params: Params) -> Any:
    return _answer(peer, params, params["value"])


def _answer(peer: Dispatcher, params: Params, text: str) -> Any:
    questions = _live(peer, params).questions
    return {"resolved": questions.answer(params.get("request_id") or "", text)}


# Commands


def catalog(_peer: Dispatcher, _params: Params) -> Any:
    return {
        "commands": [
            {
                "name": f"/{one.name}",
                "hint": one.hint,
                "help": one.help,
                "aliases": [f"/{alias}" for alias in one.aliases],
                "while_busy": one.while_busy,
            }
            for one in slash.COMMANDS
        ]
    }


def dispatch(peer: Dispatcher, params: Params) -> Any:
    live = _live(peer, params)
    name = params["name"].removeprefix("/").lower()
    command = told(lambda: slash.find(name))
    if live.is_running and not command.while_busy:
        raise RpcError(BUSY, f"a turn is running; /{command.name} has to wait, or /stop it")
    before = None if live.is_running else _state(live)  # a turn shows its changes itself
    line = f"/{name} {params.get('arg') or ''}".rstrip()
    outcome = told(lambda: slash.run(live.desk, line))
    if not live.follow(outcome):
        raise RpcError(NOTHING_TO_DO, f"there is nothing to /{command.name}")
    is_changed = before is not None and _state(live) != before
    if is_changed:
        live.emit("session.info", live.info())
    return {**_kind(outcome), "changed": is_changed}


def _state(live: Live) -> tuple[str, Any]:
    """What a front end would have to show anew when it changes."""
    return live.desk.session_id, [one["id"] for one in live.messages()]


def _kind(outcome: slash.Outcome) -> dict[str, Any]:
    if outcome.say:
        return {"type": "send", "message": outcome.say, "output": outcome.text}
    if outcome.fill:
        return {"type": "prefill", "message": outcome.fill, "output": outcome.text}
    if outcome.leave:
        return {"type": "leave", "output": outcome.text}
    return {"type": "exec", "output": outcome.text}


def _live(peer: Dispatcher, params: Params) -> Live:
    return peer.hub.live(params["session_id"])


def told(work: Any) -> Any:
    """Do *work*; what a person did wrong is told in the words of the error."""
    try:
        return work()
    except UsageError as error:
        raise RpcError(NOTHING_TO_DO, str(error)) from error
