"""Sessions of opencode: a file for its `import` command, like those of its `export`.

Its database is not written: the program may be using it. IDs sort by time, and hold the identity
of the message that they stand for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import objects_in, parse_object, text_in
from hermes_core.paths import hermes_home
from hermes_import.writers.conversation import NativeTool, with_native_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonData, JsonObject
    from hermes_import.writers.conversation import (
        Fields,
        HandedCall,
        HandedConversation,
        HandedMessage,
    )

VERSION: Final = "1.18.33"  # whose files these are like
PROVIDER: Final = "hermes"  # of the model that wrote the answers
AGENT: Final = "build"
TIME_BITS: Final = 48
IDS_PER_MILLISECOND: Final = 0x1000
OLD_AND_NEW: Final = {"path": "filePath", "old_string": "oldString", "new_string": "newString",
                      "replace_all": "replaceAll"}  # fmt: skip
TOOLS: Final = {
    "terminal": NativeTool("bash", {}, ["command"]),
    "read_file": NativeTool("read", {"path": "filePath"}, ["path"]),
    "write_file": NativeTool("write", {"path": "filePath"}, ["path", "content"]),
    "patch": NativeTool("edit", OLD_AND_NEW, ["path", "old_string", "new_string"]),
    "search_files": NativeTool("grep", {"glob": "include"}, ["pattern"]),
}
NO_TOKENS: Final[Fields] = {
    "input": 0,
    "output": 0,
    "reasoning": 0,
    "cache": {"read": 0, "write": 0},
}


class OpenCodeWriter:
    """Writes sessions of opencode."""

    label = "opencode"
    program = "opencode"
    package = "opencode-ai"

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        state = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
        self._settings = config / "opencode" / "opencode.json"
        self._recent = state / "opencode" / "model.json"

    def path(self, talk: HandedConversation) -> Path:
        return hermes_home() / "handoffs" / f"opencode-{talk.native_id}.json"

    def pieces(self, talk: HandedConversation) -> Iterator[bytes]:
        messages = OpenCodeMessages(talk, self._model(talk)).all()
        # What is older than its session is a copy to the importer: no message may be.
        started_at = int(min(talk.started_at, *(message.at for message in talk.messages)) * 1000)
        info = {
            "id": session_id(talk.native_id),
            "slug": f"hermes-{talk.native_id[:8]}",
            "projectID": "global",
            "directory": talk.cwd,
            "title": talk.title or talk.messages[0].text[:60],
            "version": VERSION,
            "time": {"created": started_at, "updated": talk.messages[-1].milliseconds},
        }
        document = {"info": info, "messages": messages}
        yield json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace")

    def _model(self, talk: HandedConversation) -> Fields:
        """The model with which the session continues: opencode takes that of its last prompt."""
        provider, _, model = text_in(_object_at(self._settings), "model").partition("/")
        if model:
            return {"providerID": provider, "modelID": model}
        for each in objects_in(_object_at(self._recent), "recent"):
            return {"providerID": text_in(each, "providerID"), "modelID": text_in(each, "modelID")}
        return {"providerID": PROVIDER, "modelID": talk.model}

    def import_command(self, path: Path) -> list[str]:
        return [self.program, "import", str(path)]

    def resume_command(self, native_id: str) -> list[str]:
        return [self.program, "--session", session_id(native_id)]


def session_id(native_id: str) -> str:
    """The ID of a session; one of opencode itself is complete."""
    return native_id if native_id.startswith("ses_") else f"ses_{native_id.replace('-', '')}"


def _object_at(path: Path) -> JsonObject:
    """The object in a file of JSON; an empty one if there is none."""
    try:
        return parse_object(path.read_text("utf-8")) or {}
    except (OSError, ValueError):
        return {}


class OpenCodeMessages:
    """The messages of a session: a result is a part of the answer with its call."""

    def __init__(self, talk: HandedConversation, model: Fields) -> None:
        self._talk = talk
        self._model = model
        self._session_id = session_id(talk.native_id)
        self._latest = 0
        self._created = 0
        self._prompt_id = ""

    def all(self) -> list[JsonData]:
        """All messages."""
        messages = with_native_tools(self._talk.messages, TOOLS)
        found: list[JsonData] = []
        while messages:
            message = messages.pop(0)
            results: dict[str, HandedMessage] = {}
            while messages and messages[0].role == "tool":
                result = messages.pop(0)
                results[result.call_id] = result
            found.append(self._message(message, results))
        return found

    def _id(self, prefix: str, message: HandedMessage) -> str:
        """An ID after all others so far."""
        self._latest = max(self._latest + 1, message.milliseconds * IDS_PER_MILLISECOND)
        time = self._latest % (1 << TIME_BITS)
        return f"{prefix}_{time:012x}hermes{message.uid}"

    def _message(self, message: HandedMessage, results: Mapping[str, HandedMessage]) -> Fields:
        # opencode sorts by time, and a summary is newer than the messages that follow it.
        self._created = max(self._created, message.milliseconds)
        own_id = self._id("msg", message)
        if message.role == "user":
            self._prompt_id = own_id
            facts = self._prompt(message)
        else:
            facts = self._answer(message, self._prompt_id or own_id)
        info = {"id": own_id, "sessionID": self._session_id, "agent": AGENT, **facts}
        place = {"sessionID": self._session_id, "messageID": own_id}
        parts = [{**part, **place} for part in self._parts(message, results)]
        return {"info": info, "parts": parts}

    def _prompt(self, message: HandedMessage) -> Fields:
        time = {"created": self._created}
        return {"role": "user", "time": time, "model": self._model}

    def _answer(self, message: HandedMessage, prompt_id: str) -> Fields:
        at, folder = self._created, self._talk.cwd
        return {
            "role": "assistant",
            "time": {"created": at, "completed": at},
            "parentID": prompt_id,
            "modelID": self._talk.model,
            "providerID": PROVIDER,
            "mode": AGENT,
            "path": {"cwd": folder, "root": folder},
            "cost": 0,
            "tokens": NO_TOKENS,
            "finish": "tool-calls" if message.calls else "stop",
        }

    def _parts(
        self, message: HandedMessage, results: Mapping[str, HandedMessage]
    ) -> Iterator[Fields]:
        if message.text:
            yield {"id": self._id("prt", message), "type": "text", "text": message.text}
        for each in message.pictures:
            file: Fields = {"type": "file", "mime": each.mime, "url": each.url}
            yield {"id": self._id("prt", message), **file}
        for call in message.calls:
            result = results[call.call_id]
            state = _state(call, message, result)
            tool: Fields = {
                "type": "tool",
                "tool": call.name,
                "callID": call.call_id,
                "state": state,
            }
            yield {"id": self._id("prt", result), **tool}


def _state(call: HandedCall, message: HandedMessage, result: HandedMessage) -> Fields:
    start = message.milliseconds
    time = {"start": start, "end": max(start, result.milliseconds)}
    done: Fields = {"input": call.arguments, "time": time}
    if result.is_error and not result.exit_code:
        return {"status": "error", "error": result.text, **done}
    metadata: Fields = {"output": result.text, "exit": result.exit_code, "truncated": False}
    shown: Fields = {"output": result.text, "metadata": metadata, "title": call.name}
    return {"status": "completed", **shown, **done}
